"""What passes while the service cannot decide."""

from __future__ import annotations

import time

import pytest
from conftest import Service, eventually, make_tenant
from proxy import Fault, Proxy, problem

from quotasvc import AsyncQuota, Backoff, FailOpenEvent, Quota, Undecided
from quotasvc.errors import CreditsExhausted, NoAnswer, QuotaExceeded, Unavailable

pytestmark = pytest.mark.feature("fail-open")
FAST = Backoff(base=0.01, cap=0.05)


def test_a_dead_service_lets_open_meters_pass_and_tells_the_hook(dead_url: str) -> None:
    events: list[FailOpenEvent] = []
    quota = Quota(dead_url, "k", backoff=FAST, fail_open={"api_calls", "tokens"}, on_fail_open=events.append)
    answer = quota.consume("acme", {"api_calls": 1, "tokens": 30}, subject="user-1")
    assert answer.failed_open and [i.charged for i in answer.items] == [0, 0]
    assert quota.check("acme", "api_calls").allowed
    assert [(e.operation, e.tenant, dict(e.items)) for e in events] == [
        ("consume", "acme", {"api_calls": 1, "tokens": 30}),
        ("check", "acme", {"api_calls": 1}),
    ]
    assert isinstance(events[0].error, NoAnswer) and events[0].key == answer.operation_id


def test_other_meters_stay_closed(dead_url: str) -> None:
    quota = Quota(dead_url, "k", backoff=FAST, fail_open={"api_calls"})
    with pytest.raises(NoAnswer):
        quota.consume("acme", {"api_calls": 1, "credits": 1})
    with pytest.raises(NoAnswer):
        Quota(dead_url, "k", backoff=FAST).consume("acme", "api_calls")


@pytest.mark.parametrize("fault", [problem(503, "unavailable", Retry_After="60"), problem(500, "internal"), Fault("answer", 502), Fault("hang")])
def test_what_counts_as_undecided(service: Service, proxy: Proxy, fault: Fault) -> None:
    proxy.down = fault
    quota = Quota(proxy.url, service.key, backoff=FAST, timeout=0.3, deadline=0.5, fail_open={"api_calls"})
    assert quota.consume("acme", "api_calls").failed_open


def test_a_denial_is_a_decision(service: Service, quota: Quota) -> None:
    tenant = make_tenant(quota, "small")
    opened = Quota(service.url, service.key, retry_denied=False, fail_open={"api_calls"})
    quota.consume(tenant, "api_calls")
    with pytest.raises(QuotaExceeded):
        opened.consume(tenant, "api_calls", 5)


def test_a_hook_that_fails_does_not_fail_the_request(dead_url: str, caplog: pytest.LogCaptureFixture) -> None:
    def hook(event: FailOpenEvent) -> None:
        raise RuntimeError("no metrics today")

    assert Quota(dead_url, "k", backoff=FAST, fail_open={"api_calls"}, on_fail_open=hook).consume("acme", "api_calls").failed_open
    assert "the hook on_fail_open failed" in caplog.text


def test_what_passed_can_be_charged_later_once(service: Service, proxy: Proxy, tenant: str) -> None:
    events: list[FailOpenEvent] = []
    quota = Quota(proxy.url, service.key, backoff=FAST, attempts=1, fail_open={"api_calls"}, on_fail_open=events.append)
    proxy.faults.append(Fault("lose"))  # it was charged, and nobody here knows
    assert quota.debit(tenant, "api_calls", 4).failed_open
    proxy.faults.append(Fault("refuse"))  # it was not
    assert quota.debit(tenant, "api_calls", 4).failed_open
    for e in events:
        quota.debit(e.tenant, e.items, key=e.key)
    assert quota.balance(tenant, "api_calls").used == 8


async def test_async_a_dead_service_lets_open_meters_pass(dead_url: str) -> None:
    async with AsyncQuota(dead_url, "k", backoff=FAST, fail_open={"api_calls"}) as quota:
        assert (await quota.consume("acme", "api_calls")).failed_open
        with pytest.raises(Undecided):
            await quota.consume("acme", "credits")


def test_a_refund_is_not_sent_for_work_that_passed_undecided(service: Service, proxy: Proxy) -> None:
    proxy.down = problem(503, "unavailable")
    quota = Quota(proxy.url, service.key, backoff=FAST, attempts=1, fail_open={"api_calls"})
    with pytest.raises(ZeroDivisionError), quota.use("acme", "api_calls"):
        _ = 1 / 0
    assert [s.path for s in proxy.seen] == ["/v1/consume"]
    with pytest.raises(Unavailable):
        quota.refund("acme", "x")


def test_a_service_that_is_away_delays_a_few_requests_then_one_a_second_and_is_noticed_when_it_is_back(
    service: Service, proxy: Proxy, tenant: str
) -> None:
    proxy.down = Fault("hang")
    quota = Quota(proxy.url, service.key, backoff=FAST, attempts=1, timeout=0.2, fail_open={"api_calls"})
    began = time.monotonic()
    for _ in range(500):
        assert quota.consume(tenant, "api_calls").failed_open
    asked, seconds = len(proxy.seen), time.monotonic() - began
    assert 5 <= asked <= 6 + seconds
    with pytest.raises(Undecided):
        quota.consume(tenant, "tokens")
    assert len(proxy.seen) == asked + 1, "meters that stay closed are always asked for"
    proxy.down = None
    eventually(lambda: not quota.consume(tenant, "api_calls").failed_open)
    with pytest.raises(CreditsExhausted):
        quota.with_options(retry_denied=False).consume(tenant, "api_calls", 2_000_000)


def test_fail_open_is_a_collection() -> None:
    with pytest.raises(ValueError, match="collection of meters"):
        Quota("http://127.0.0.1:1", "k", fail_open="api_calls")
