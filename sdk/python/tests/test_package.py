"""What a user gets: the wheel, its types, the programs and pages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT, SDK, Service, make_tenant

from quotasvc import Quota

TYPED = """
from quotasvc import AsyncQuota, Quota, LocalUnits, Webhook
from quotasvc.errors import QuotaExceeded

def f(quota: Quota) -> int:
    with quota.use("acme", {"api_calls": 1}) as answer, quota.hold("acme", "tokens", 10) as hold:
        hold.add(1)
        reveal_type(answer.items[0].remaining)
    try:
        LocalUnits(quota, "acme", "api_calls").take(1)
    except QuotaExceeded as e:
        reveal_type(e.reset_at)
    for entry in quota.api.all_entries(tenant="acme", order="desc"):
        reveal_type(entry.created_at)
    return answer.items[0].remaining

async def g(quota: AsyncQuota) -> None:
    reveal_type(await quota.consume("acme", "api_calls"))
    async for entry in quota.api.all_entries(tenant="acme"):
        reveal_type(entry.amount)
    await quota.consume("acme", "api_calls", mode="wrong")
"""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel. It is built from a copy, so that nothing is left in the repository."""
    source, out = tmp_path_factory.mktemp("source") / "sdk", tmp_path_factory.mktemp("wheel")
    shutil.copytree(SDK, source, ignore=shutil.ignore_patterns("__pycache__", ".*_cache", "tests"))
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)], cwd=source, check=True, capture_output=True)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="session")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel and the system's packages."""
    directory = tmp_path_factory.mktemp("venv")
    venv.create(directory, system_site_packages=True, with_pip=True)
    python = directory / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel], check=True)
    return python


def run(python: Path, *arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([python, *arguments], cwd=cwd, env={**env, **environment}, capture_output=True, text=True, timeout=120)


def test_the_wheel_has_the_package_alone(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "quotasvc/py.typed" in names and "quotasvc/fastapi.py" in names
    assert all(name.startswith(("quotasvc/", "quotasvc-")) for name in names)
    metadata = zipfile.ZipFile(wheel).read(next(n for n in names if n.endswith("METADATA"))).decode()
    needed = [line for line in re.findall(r"(?m)^Requires-Dist: (.*)$", metadata) if "extra" not in line]
    assert len(needed) == 1 and needed[0].startswith("httpx")


def test_the_wheel_says_who_made_it_and_what_for(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        metadata = files.read(next(n for n in files.namelist() if n.endswith("METADATA"))).decode()
        licences = [n for n in files.namelist() if ".dist-info/" in n and n.endswith("LICENSE")]
        assert len(licences) == 1 and "Apache License" in files.read(licences[0]).decode()
    for line in ("Author: The quotasvc authors", "License: Apache-2.0", "Classifier: Development Status :: 5 - Production/Stable",
                 "Classifier: Programming Language :: Python :: 3.11", "Project-URL: Changelog, "):
        assert f"\n{line}" in metadata, line


def test_the_licence_is_that_of_the_repository() -> None:
    assert (SDK / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_wheel_works_without_frameworks(python: Path, tmp_path: Path) -> None:
    program = "import sys, quotasvc; print(quotasvc.__file__); assert not {'starlette', 'fastapi', 'django'} & set(sys.modules)"
    out = run(python, "-c", program, cwd=tmp_path)
    assert out.returncode == 0 and str(python.parent.parent) in out.stdout, out.stderr


def test_the_package_is_strictly_typed() -> None:
    out = subprocess.run(["mypy"], cwd=SDK, capture_output=True, text=True)
    assert out.returncode == 0, out.stdout


def test_types_reach_a_users_program(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TYPED)
    env = {**os.environ, "MYPYPATH": str(SDK / "src")}
    out = subprocess.run(["mypy", "--strict", "program.py"], cwd=tmp_path, env=env, capture_output=True, text=True)
    revealed = [t.replace("builtins.", "").replace("datetime.", "") for t in re.findall(r'Revealed type is "(.*)"', out.stdout)]
    wanted = ["int", "Union[datetime, None]", "datetime", "quotasvc.models.DebitAnswer", "int"]
    assert revealed == wanted and out.stdout.count("error:") == 1 and 'Argument "mode"' in out.stdout, out.stdout


@pytest.mark.feature("holds")
def test_the_stream_example(python: Path, service: Service, quota: Quota, tenant: str) -> None:
    def stream(name: str) -> tuple[int, str]:
        out = run(python, "stream.py", name, "tokens", cwd=SDK / "examples", QUOTASVC_URL=service.url, QUOTASVC_KEY=service.key)
        assert not out.stderr, out.stderr
        return out.returncode, out.stdout

    assert stream(tenant) == (0, "Quotas are kept.\ncharged 3, remaining 999997\n")
    code, text = stream(make_tenant(quota, "small"))
    assert code == 1 and text.startswith("not now: meter_not_in_plan")


@pytest.mark.feature("local-allowance")
def test_the_hot_path_example(python: Path, service: Service, quota: Quota, tenant: str) -> None:
    environment = {"QUOTASVC_URL": service.url, "QUOTASVC_KEY": service.key}
    out = run(python, "hot_path.py", tenant, "api_calls", "2000", cwd=SDK / "examples", **environment)
    assert out.stdout.startswith("taken 2000, refused 0, charged 2000, requests "), out.stderr
    assert quota.balance(tenant, "api_calls").used == 2000


def test_local_units_that_were_not_closed_are_captured_at_the_end(python: Path, service: Service, quota: Quota, tenant: str, tmp_path: Path) -> None:
    program = f"from quotasvc import *; LocalUnits(Quota(), {tenant!r}, 'api_calls', capture_every=60).take_wait(7)"
    out = run(python, "-c", program, cwd=tmp_path, QUOTASVC_URL=service.url, QUOTASVC_KEY=service.key)
    assert out.returncode == 0, out.stderr
    balance = quota.balance(tenant, "api_calls")
    assert (balance.used, balance.held) == (7, 0)


def pages() -> list[Path]:
    return [SDK / "README.md", ROOT / "docs" / "integrate" / "python.md"]


@pytest.mark.parametrize("page", pages(), ids=lambda p: p.name)
def test_programs_of_the_pages_run(page: Path, python: Path, service: Service, quota: Quota, tmp_path: Path) -> None:
    """Each python block is a program. One that names tenant acme finds it; those that serve are only imported."""
    quota.api.put_tenant(tenant="acme", plan="large")
    blocks = re.findall(r"(?ms)^```python[^\n]*\n(.*?)^```$", page.read_text())
    assert blocks
    environment = {"QUOTASVC_URL": service.url, "QUOTASVC_KEY": service.key, "QUOTASVC_WEBHOOK_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
    for number, block in enumerate(blocks):
        if "MIDDLEWARE" in block:
            continue  # a part of Django's settings
        file = tmp_path / f"block{number}.py"
        file.write_text(block)
        out = run(python, str(file), cwd=tmp_path, **environment)
        assert out.returncode == 0, f"{page.name}, block {number}:\n{block}\n{out.stderr}"
