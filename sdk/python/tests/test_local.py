"""Local units: the promises of docs/recipes/local-units.md."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest
from conftest import SDK, Service, eventually, make_tenant
from proxy import Fault, Proxy, problem

from quotasvc import Backoff, LocalDenied, LocalUnits, Quota
from quotasvc._localhold import LocalHold, Sizing
from quotasvc.errors import NoAnswer, QuotaError

pytestmark = pytest.mark.feature("local-allowance")
FAST = Backoff(base=0.01, cap=0.05)


def state(quota: Quota, tenant: str) -> tuple[int, int]:
    b = quota.balance(tenant, "api_calls")
    return b.used, b.held


def test_many_takers_are_charged_what_was_taken(quota: Quota, tenant: str) -> None:
    taken = [0] * 8
    units = LocalUnits(quota, tenant, "api_calls", min=500)
    with units:

        def taker(number: int) -> None:
            for _ in range(300):
                units.take_wait(1, timeout=30)
                taken[number] += 1

        threads = [threading.Thread(target=taker, args=(n,)) for n in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        requests = units.stats().requests
    assert sum(taken) == 2400 and state(quota, tenant) == (2400, 0)
    stats = units.stats()
    assert (stats.taken, stats.captured, stats.uncharged) == (2400, 2400, 0) and requests < 240, "not a request for each take"


def test_two_processes_grant_a_balance_once_to_the_last_unit(service: Service) -> None:
    quota = service.quota()
    tenant = make_tenant(quota, "limited")  # 1000 units
    granted = [0, 0]

    def backend(number: int) -> None:
        with LocalUnits(Quota(service.url, service.key), tenant, "api_calls", min=50, capture_every=0.1) as units:
            refused = 0
            while refused < 3:
                try:
                    units.take_wait(1, timeout=30)
                    granted[number] += 1
                except LocalDenied as denied:
                    assert denied.reason == "exhausted" and denied.code == "quota_exceeded"
                    refused += 1
                    time.sleep(0.7)

    threads = [threading.Thread(target=backend, args=(n,)) for n in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sum(granted) == 1000 and state(quota, tenant) == (1000, 0)


def test_take_never_waits(quota: Quota, tenant: str) -> None:
    with LocalUnits(quota, tenant, "api_calls") as units:
        with pytest.raises(LocalDenied) as denied:
            units.take()
        assert denied.value.reason == "refilling"
        units.take_wait(50, timeout=30)
        units.take()
    with pytest.raises(LocalDenied) as denied:
        units.take()
    assert denied.value.reason == "closed"
    assert state(quota, tenant) == (51, 0)


async def test_coroutines_take_too(quota: Quota, tenant: str) -> None:
    units = LocalUnits(quota, tenant, "api_calls")
    for _ in range(10):
        await units.take_wait_async(timeout=30)
    units.close()
    assert state(quota, tenant) == (10, 0)


def test_close_returns_the_rest_at_once(quota: Quota, tenant: str) -> None:
    units = LocalUnits(quota, tenant, "api_calls")
    units.take_wait(3, timeout=30)
    assert state(quota, tenant)[1] >= 97
    units.close()
    units.close()
    assert state(quota, tenant) == (3, 0)


def test_lost_answers_charge_once(service: Service, proxy: Proxy, tenant: str) -> None:
    quota = Quota(proxy.url, service.key)
    proxy.faults.append(Fault("lose"))
    units = LocalUnits(quota, tenant, "api_calls", backoff=FAST, capture_every=0.05)
    units.take_wait(5, timeout=30)
    proxy.faults.extend([Fault("lose"), problem(503, "outcome_unknown"), Fault("answer", 404, {}, b"<html>")])
    eventually(lambda: units.stats().captured == 5)
    proxy.faults.append(Fault("lose"))
    units.close()
    assert state(service.quota(), tenant) == (5, 0)


def test_use_of_an_expired_hold_is_debited(service: Service, proxy: Proxy, tenant: str) -> None:
    units = LocalUnits(Quota(proxy.url, service.key), tenant, "api_calls", ttl=1, capture_every=60, backoff=FAST)
    units.take_wait(7, timeout=30)
    proxy.down = Fault("refuse")
    time.sleep(1.5)
    proxy.down = None
    units.close()
    stats = units.stats()
    assert stats.debited == 7 and state(service.quota(), tenant) == (7, 0)


def test_an_outage_spends_what_is_held_then_refuses_then_goes_on(service: Service, proxy: Proxy, tenant: str) -> None:
    errors: list[QuotaError] = []
    units = LocalUnits(Quota(proxy.url, service.key), tenant, "api_calls", min=100, max=100, backoff=FAST, on_error=errors.append)
    units.take_wait(1, timeout=30)
    proxy.down = Fault("refuse")
    reason = ""
    got = 1
    end = time.monotonic() + 20
    while reason != "away" and time.monotonic() < end:
        try:
            units.take()
            got += 1
        except LocalDenied as denied:
            reason = denied.reason
            time.sleep(0.01)
    assert reason == "away" and got >= 100 and errors
    proxy.down = None
    units.take_wait(1, timeout=30)
    units.close()
    assert state(service.quota(), tenant) == (got + 1, 0)


def test_units_without_a_hold_are_bounded_and_debited_after(service: Service, proxy: Proxy, tenant: str) -> None:
    proxy.down = Fault("refuse")
    units = LocalUnits(Quota(proxy.url, service.key), tenant, "api_calls", unbacked_max=5, backoff=FAST)
    with pytest.raises(LocalDenied):
        units.take()
    eventually(lambda: units._away)
    for _ in range(5):
        units.take()
    with pytest.raises(LocalDenied) as denied:
        units.take()
    assert denied.value.reason == "away"
    proxy.down = None
    eventually(lambda: units.stats().debited == 5)
    units.close()
    assert state(service.quota(), tenant) == (5, 0)


def test_close_without_service_ends_in_time_with_an_error(service: Service, proxy: Proxy, tenant: str) -> None:
    units = LocalUnits(Quota(proxy.url, service.key, timeout=1), tenant, "api_calls", backoff=FAST)
    units.take_wait(1, timeout=30)
    proxy.down = Fault("refuse")
    began = time.monotonic()
    with pytest.raises(NoAnswer, match="1 used units were not charged in time, and 1 holds"):
        units.close(timeout=0.5)
    assert time.monotonic() - began < 10


def test_a_killed_process_loses_uncaptured_use_only(service: Service, quota: Quota, tenant: str) -> None:
    program = f"""
import os, time
from quotasvc import LocalUnits, Quota
units = LocalUnits(Quota(), {tenant!r}, "api_calls", ttl=3, capture_every=0.2)
units.take_wait(10, timeout=30)
while units.stats().captured < 10:
    time.sleep(0.01)
units.take(5)
os.kill(os.getpid(), 9)
"""
    environment = {**os.environ, "PYTHONPATH": str(SDK / "src"), "QUOTASVC_URL": service.url, "QUOTASVC_KEY": service.key}
    assert subprocess.run([sys.executable, "-c", program], env=environment, timeout=60).returncode == -9
    eventually(lambda: state(quota, tenant) == (10, 0))  # what was held is back when the hold has expired


def test_exhausted_says_why_and_a_top_up_is_noticed(quota: Quota, tenant: str) -> None:
    with LocalUnits(quota, tenant, "credits") as units:
        with pytest.raises(LocalDenied) as denied:
            units.take_wait(1, timeout=30)
        assert (denied.value.reason, denied.value.code, denied.value.status) == ("exhausted", "credits_exhausted", 402)
        quota.api.grant(tenant=tenant, meter="credits", amount=10, source="topup")

        def taken() -> bool:
            try:
                units.take(1)
                return True
            except LocalDenied:
                return False

        eventually(taken)


@pytest.mark.parametrize(
    ("options", "demand"),
    [
        ({"max": 0}, "max must be"), ({"min": 5, "max": 4}, "min must be"), ({"ttl": 0}, "ttl must be"), ({"ttl": 86401}, "ttl must be"),
        ({"capture_every": 0}, "capture_every must be"), ({"unbacked_max": -1}, "unbacked_max must be"),
    ],
)  # fmt: skip
def test_wrong_options_are_named(options: dict[str, int], demand: str) -> None:
    with pytest.raises(ValueError, match=demand):
        LocalUnits(Quota("http://127.0.0.1:1", "k"), "acme", "api_calls", **options)  # type: ignore[arg-type]


def hold(**values: object) -> LocalHold:
    h = LocalHold("h", 100)
    h.lasts(60, 60)
    for name, value in values.items():
        setattr(h, name, value)
    return h


@pytest.mark.parametrize(
    ("h", "now", "closing", "do", "due"),
    [
        (hold(), 1, False, None, 30),
        (hold(taken=5, since=1, touched=True), 1.5, False, None, 2),
        (hold(taken=5, since=1, touched=True), 2, False, "capture", 0),
        (hold(taken=100, touched=True), 2, False, "finish", 0),
        (hold(taken=100, captured=100, asked=100), 2, False, "release", 0),
        (hold(taken=5, captured=5, asked=5, touched=True), 30, False, "extend", 0),
        (hold(taken=5, captured=5, asked=5, touched=True, reset=80), 30, False, None, 50),
        (hold(), 30, False, "release", 0),
        (hold(taken=5, since=49, touched=True), 50, False, "finish", 0),
        (hold(taken=5), 1, True, "finish", 0),
        (hold(), 1, True, "release", 0),
    ],
)
def test_what_happens_with_a_hold(h: LocalHold, now: float, closing: bool, do: str | None, due: float) -> None:
    assert h.next(now, 60, 1, closing) == (do, due)


def test_sizes_follow_use_and_what_remains() -> None:
    s = Sizing(100, 10_000)
    assert s.next(0, 1) == 100
    s.missing = 7
    assert s.next(100, 1.01) >= 200, "spent too early: twice the last"
    s.missing = 0
    assert s.next(100_000, 2) == 10_000
    s.remaining = 400
    assert s.next(100_000, 3) == 101, "a quarter of what remains"
    assert s.smaller(40) == 11 and s.smaller(0) == 0
