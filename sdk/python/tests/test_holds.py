"""Holds: reserve, use, return."""

from __future__ import annotations

import asyncio
import time

import anyio
import pytest
from conftest import Service, make_tenant
from proxy import Fault, Proxy, problem

from quotasvc import AsyncQuota, Backoff, Quota
from quotasvc.errors import HoldNotActive, QuotaExceeded, Unavailable

pytestmark = pytest.mark.feature("holds")
FAST = Backoff(base=0.01, cap=0.05)


def balance(quota: Quota, tenant: str, meter: str = "tokens") -> tuple[int, int]:
    b = quota.balance(tenant, meter)
    return b.used, b.held


def test_a_stream_is_charged_what_it_used(quota: Quota, tenant: str) -> None:
    with quota.hold(tenant, "tokens", 1000, ttl=60) as hold:
        assert balance(quota, tenant) == (0, 1000)
        for part in (100, 23, 7):
            hold.add(part)
    assert balance(quota, tenant) == (130, 0) and hold.captured == 130


def test_a_stream_that_breaks_is_charged_what_it_used(quota: Quota, tenant: str) -> None:
    with pytest.raises(ConnectionError), quota.hold(tenant, "tokens", 1000) as hold:
        hold.add(42)
        raise ConnectionError
    assert balance(quota, tenant) == (42, 0)


def test_a_block_without_use_returns_all(quota: Quota, tenant: str) -> None:
    with quota.hold(tenant, "tokens", 1000):
        pass
    assert balance(quota, tenant) == (0, 0)


def test_capture_settles_the_hold(quota: Quota, tenant: str) -> None:
    with quota.hold(tenant, "tokens", 1000) as hold:
        hold.capture(300)
        with pytest.raises(HoldNotActive):
            hold.capture(1)
    assert balance(quota, tenant) == (300, 0)


def test_a_denied_hold_runs_nothing(quota: Quota) -> None:
    tenant = make_tenant(quota, "small")
    quota.consume(tenant, "api_calls")
    with pytest.raises(QuotaExceeded), quota.with_options(retry_denied=False).hold(tenant, "api_calls", 5):
        pytest.fail("the block must not run")


def test_more_than_held_is_debited_if_the_balance_has_it(quota: Quota, tenant: str) -> None:
    with quota.hold(tenant, "tokens", 100) as hold:
        hold.add(130)
    assert balance(quota, tenant) == (130, 0) and hold.shortfall == 0


@pytest.mark.parametrize("overrun", ["best_effort", "drain"])
def test_more_than_the_balance_has_is_told(quota: Quota, overrun: str) -> None:
    tenant = make_tenant(quota, "small")
    impatient = quota.with_options(retry_denied=False)
    with impatient.hold(tenant, "api_calls", 3, overrun=overrun) as hold:  # type: ignore[arg-type]
        hold.add(9)
    answer = quota.balance(tenant, "api_calls")
    assert (hold.captured, hold.shortfall, answer.used) == (5, 4, 5)
    assert answer.overage == (4 if overrun == "drain" else 0)


def test_use_of_an_expired_hold_is_debited(quota: Quota, tenant: str) -> None:
    with quota.hold(tenant, "tokens", 100, ttl=1) as hold:
        hold.add(60)
        time.sleep(1.5)
    assert balance(quota, tenant) == (60, 0) and hold.captured == 60


def test_extend_keeps_it(quota: Quota, tenant: str) -> None:
    with quota.hold(tenant, "tokens", 100, ttl=2) as hold:
        hold.extend(60)
        hold.extend(90)
        time.sleep(2.2)
        assert balance(quota, tenant) == (0, 100)


@pytest.mark.feature("idempotency")
def test_lost_answers_charge_once(service: Service, proxy: Proxy, tenant: str) -> None:
    quota = Quota(proxy.url, service.key, backoff=FAST)
    proxy.faults.append(Fault("lose"))
    with quota.hold(tenant, "tokens", 100) as hold:
        hold.add(60)
        proxy.faults.append(Fault("lose"))
    assert balance(quota, tenant) == (60, 0)


@pytest.mark.feature("fail-open")
def test_a_hold_that_fails_open_is_debited_when_the_service_is_back(service: Service, proxy: Proxy, tenant: str) -> None:
    quota = Quota(proxy.url, service.key, backoff=FAST, fail_open={"tokens"})
    proxy.down = Fault("refuse")
    with quota.hold(tenant, "tokens", 100) as hold:
        assert hold.failed_open
        hold.add(60)
        proxy.down = None
    assert balance(quota, tenant) == (60, 0)


def test_what_could_not_be_captured_is_an_error_unless_the_block_raised(service: Service, proxy: Proxy, tenant: str) -> None:
    quota = Quota(proxy.url, service.key, backoff=FAST)
    with pytest.raises(Unavailable), quota.hold(tenant, "tokens", 100) as hold:
        hold.add(60)
        proxy.down = problem(503, "unavailable")
    proxy.down = None
    with pytest.raises(ConnectionError), quota.hold(tenant, "tokens", 100) as hold:
        hold.add(60)
        proxy.down = problem(503, "unavailable")
        raise ConnectionError


async def test_async_a_cancelled_stream_is_charged_what_it_used(aquota: AsyncQuota, tenant: str) -> None:
    async def stream() -> None:
        async with aquota.hold(tenant, "tokens", 1000) as hold:
            hold.add(42)
            begun.set()
            await asyncio.sleep(60)

    begun = asyncio.Event()
    task = asyncio.create_task(stream())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    answer = await aquota.balance(tenant, "tokens")
    assert (answer.used, answer.held) == (42, 0)


async def test_async_a_stream_whose_scope_is_cancelled_is_charged_what_it_used(aquota: AsyncQuota, tenant: str) -> None:
    with anyio.CancelScope() as scope:  # as Starlette does when the client of a StreamingResponse leaves
        async with aquota.hold(tenant, "tokens", 1000) as hold:
            hold.add(42)
            scope.cancel()
            await asyncio.sleep(60)
    for _ in range(500):
        answer = await aquota.balance(tenant, "tokens")
        if answer.used:
            break
        await asyncio.sleep(0.02)
    assert (answer.used, answer.held) == (42, 0)


async def test_async_a_stream_is_charged_what_it_used(aquota: AsyncQuota, tenant: str) -> None:
    async with aquota.hold(tenant, "tokens", 1000) as hold:
        hold.add(130)
    answer = await aquota.balance(tenant, "tokens")
    assert (answer.used, answer.held) == (130, 0)
