"""Holds requests and answers to openapi.yaml."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import yaml

CONTRACT = Path(__file__).resolve().parents[3] / "internal" / "httpapi" / "reference" / "openapi.yaml"


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """The contract, with its nullable schemas as JSON Schema writes them."""
    return plain(yaml.safe_load(CONTRACT.read_text()))  # type: ignore[no-any-return]


def plain(node: Any) -> Any:
    if isinstance(node, list):
        return [plain(n) for n in node]
    if not isinstance(node, dict):
        return node
    node = {name: plain(value) for name, value in node.items()}
    if node.pop("nullable", False) is True and isinstance(node.get("type"), str):
        node["type"] = [node["type"], "null"]
        if "enum" in node:
            node["enum"] = [*node["enum"], None]
    return node


def resolve(node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        at: Any = document()
        for part in node["$ref"].removeprefix("#/").split("/"):
            at = at[part]
        node = at
    return node


@lru_cache(maxsize=1)
def routes() -> list[tuple[re.Pattern[str], str, dict[str, Any]]]:
    found = []
    for path, item in document()["paths"].items():
        for method, operation in item.items():
            if isinstance(operation, dict) and "operationId" in operation:
                found.append((re.compile(re.sub(r"{\w+}", "[^/]+", path) + "$"), method.upper(), {**operation, "shared": item.get("parameters", [])}))
    return sorted(found, key=lambda route: route[0].pattern.count("[^/]+"))  # literal paths first


def operation(method: str, path: str) -> dict[str, Any]:
    for pattern, name, found in routes():
        if name == method and pattern.match(path):
            return found
    raise AssertionError(f"the contract has no {method} {path}")


def validate(schema: dict[str, Any], raw: bytes) -> None:
    resolver = jsonschema.RefResolver("", document())
    # OpenAPI 3.0 is near draft 4, and 3.1 is draft 2020-12.
    validator = jsonschema.Draft4Validator if document()["openapi"].startswith("3.0") else jsonschema.Draft202012Validator
    validator(schema, resolver=resolver).validate(json.loads(raw))


class ContractTransport(httpx.BaseTransport):
    """Sends requests to the service, and fails if one of them or its answer is not in the contract."""

    def __init__(self) -> None:
        self.inner = httpx.HTTPTransport()
        self.used: set[str] = set()  # operations that succeeded

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self.inner.handle_request(request)
        response.read()
        found = operation(request.method, request.url.raw_path.decode().split("?")[0])
        parameters = {p["name"].lower() for p in map(resolve, found.get("parameters", []) + found["shared"])}
        for name in request.url.params:
            assert name.lower() in parameters or name.split(".")[0] in parameters, f"{found['operationId']} has no query parameter {name}"
        if "idempotency-key" in request.headers:
            assert "idempotency-key" in parameters, f"{found['operationId']} has no Idempotency-Key"
        answer = resolve(found["responses"][str(response.status_code)])
        if response.status_code < 300:
            self.used.add(found["operationId"])
            if body := resolve(found.get("requestBody", {})).get("content", {}).get("application/json"):
                validate(body["schema"], request.read())
        for kind, content in answer.get("content", {}).items():
            if response.headers.get("content-type", "").startswith(kind) and "json" in kind:
                validate(content["schema"], response.content)
        return response
