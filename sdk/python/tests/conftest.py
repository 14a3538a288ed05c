"""A real service with PostgreSQL and Redis, a proxy that breaks connections, and the table of features."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
SDK = HERE.parent
ROOT = SDK.parent.parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(SDK / "src"))
sys.path.insert(0, str(SDK / "scripts"))

from contract import ContractTransport  # noqa: E402
from proxy import Proxy  # noqa: E402

from quotasvc import AsyncQuota, Quota  # noqa: E402

FEATURES = [
    "idempotency", "retries", "budget", "retry-after", "timeouts", "typed-errors", "fail-open", "paging", "holds", "refund",
    "local-allowance", "webhooks", "middleware",
]  # fmt: skip


class Service:
    """A running service."""

    def __init__(self, url: str, key: str) -> None:
        self.url, self.key = url, key
        self.transport = ContractTransport()

    def quota(self, **options: Any) -> Quota:
        """Returns a client whose requests and answers are held to the contract."""
        import httpx

        return Quota(options.pop("url", self.url), self.key, http=httpx.Client(transport=self.transport), **options)


def start() -> tuple[subprocess.Popen[str], Path, str, str]:
    """Starts `quotasvc dev` on free ports, with data of its own."""
    binary = os.environ.get("QUOTASVC_BIN", str(ROOT / "bin" / "quotasvc"))
    directory = Path(tempfile.mkdtemp(prefix="quotasvc-sdk-"))
    directory.chmod(0o755)  # PostgreSQL runs as another user if this is root
    log = (directory / "log").open("w")
    process = subprocess.Popen(
        [binary, "dev", "--dir", str(directory / "data"), "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=log, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    url = key = ""
    for line in process.stdout:  # the service ends its output if it cannot start
        if match := re.match(r"\s+API\s+(http\S+)", line):
            url = match[1]
        if match := re.match(r"\s+key\s+(\S+)", line):
            key = match[1]
            break
    if not key:
        process.wait(10)
        raise RuntimeError(f"quotasvc dev did not start:\n{(directory / 'log').read_text()[-3000:]}")
    threading.Thread(target=process.stdout.read, daemon=True).start()
    return process, directory, url, key


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """A service with a catalogue for tests. QUOTASVC_TEST_URL and QUOTASVC_TEST_KEY name one that runs already."""
    process: subprocess.Popen[str] | None = None
    if url := os.environ.get("QUOTASVC_TEST_URL"):
        key = os.environ["QUOTASVC_TEST_KEY"]
    else:
        process, directory, url, key = start()
    try:
        service = Service(url, key)
        catalogue(service.quota())
        yield service
    finally:
        if process is not None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
            shutil.rmtree(directory, ignore_errors=True)


def catalogue(quota: Quota) -> None:
    """Puts the meters, plans and limits of the tests."""
    for meter in ("api_calls", "tokens", "credits"):
        quota.api.put_meter(meter=meter, unit="unit")
    quota.api.put_plan(
        plan="large",
        allowances=[
            {"meter": "api_calls", "amount": 1_000_000, "every": "month", "anchor": "calendar"},
            {"meter": "tokens", "amount": 1_000_000, "every": "month", "anchor": "calendar"},
            {"meter": "credits", "amount": 0, "every": "once", "anchor": "tenant"},
        ],
    )
    quota.api.put_plan(plan="small", allowances=[{"meter": "api_calls", "amount": 5, "every": "year", "anchor": "tenant"}])
    quota.api.put_plan(
        plan="limited",
        allowances=[{"meter": "api_calls", "amount": 1000, "every": "year", "anchor": "tenant"}],
        limits=[{"rule": "sdk", "per": ["tenant"], "kind": "token_bucket", "rate": "2/min"}],
    )


@pytest.fixture
def quota(service: Service) -> Iterator[Quota]:
    with service.quota() as quota:
        yield quota


@pytest.fixture
async def aquota(service: Service) -> Any:
    async with AsyncQuota(service.url, service.key) as quota:
        yield quota


@pytest.fixture
def tenant(quota: Quota) -> str:
    """A tenant with much of everything."""
    return make_tenant(quota, "large")


def make_tenant(quota: Quota, plan: str) -> str:
    name = f"t-{uuid.uuid4().hex[:12]}"
    quota.api.put_tenant(tenant=name, plan=plan)
    return name


@pytest.fixture
def proxy(service: Service) -> Iterator[Proxy]:
    """Stands between client and service and does what a test says."""
    with Proxy(service.url) as proxy:
        yield proxy


@pytest.fixture
def dead_url() -> str:
    """A URL where nobody listens."""
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{s.getsockname()[1]}"


def eventually(check: Callable[[], bool], seconds: float = 20) -> None:
    """Waits until check is true. The bound is far above what it takes on an idle machine."""
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "did not become true in time"
        time.sleep(0.02)


# The table of features: which tests prove which. It is written when the whole suite has passed.

_proofs: dict[str, set[str]] = defaultdict(set)
_failed = False


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    global _failed
    result: Any = yield
    report = result.get_result()
    _failed = _failed or report.failed
    if report.when == "call" and report.passed:
        for marker in item.iter_markers("feature"):
            for name in marker.args:
                assert name in FEATURES, f"{name} is no feature"
                _proofs[name].add(item.nodeid.split("[")[0])


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if os.environ.get("QUOTASVC_SDK_FEATURES") != "write" or _failed or exitstatus:
        return
    missing = [name for name in FEATURES if not _proofs[name]]
    if missing:
        print(f"\nno test proves: {', '.join(missing)}", file=sys.stderr)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return
    table = {
        "sdk": "python",
        "package": "quotasvc",
        "features": {name: {"supported": True, "tests": sorted(_proofs[name])} for name in FEATURES},
    }
    (SDK / "features.json").write_text(json.dumps(table, indent=2) + "\n")
