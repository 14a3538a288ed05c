"""Prints what a wheel contains and needs (CycloneDX): itself, and each package that it always requires, without the version that a user gets."""

import email
import json
import re
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    metadata = email.message_from_bytes(wheel.read(next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))))

name, version = metadata["Name"], metadata["Version"]
itself = f"pkg:pypi/{name}@{version}"
needed = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
parts = []
for line in needed:
    package = re.match(r"[A-Za-z0-9._-]+", line)[0]
    parts.append({
        "type": "library", "bom-ref": f"pkg:pypi/{package}", "name": package, "purl": f"pkg:pypi/{package}",
        "properties": [{"name": "requirement", "value": line}],
    })
component = {
    "type": "library", "bom-ref": itself, "name": name, "version": version, "purl": itself, "description": metadata["Summary"],
    "licenses": [{"license": {"id": "Apache-2.0"}}],
}
bom = {
    "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
    "metadata": {"component": component}, "components": parts,
    "dependencies": [{"ref": itself, "dependsOn": [part["bom-ref"] for part in parts]}, *({"ref": part["bom-ref"]} for part in parts)],
}
print(json.dumps(bom, indent=2))
