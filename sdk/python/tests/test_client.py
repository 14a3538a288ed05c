"""The client with a real service."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest
from conftest import SDK, Service, make_tenant
from proxy import Fault, Proxy, problem

from quotasvc import AsyncQuota, Backoff, Quota, RetryEvent, errors, new_key
from quotasvc.errors import (
    CreditsExhausted, Denied, IdempotencyKeyReused, InvalidAnswer, InvalidArgument, MeterNotInPlan, NoAnswer, OperationNotFound,
    QuotaError, QuotaExceeded, RateLimited, RefundExceedsDebit, TenantNotFound, TenantSuspended, Unauthenticated, Undecided,
)  # fmt: skip

FAST = Backoff(base=0.01, cap=0.05)
ODD_METADATA = SDK.parent.parent / "internal/lab/testenv/testdata/odd-metadata.jsonl"


def used(quota: Quota, tenant: str, meter: str = "api_calls") -> int:
    return quota.balance(tenant, meter).used


def test_consume_and_check_say_what_is_left(quota: Quota) -> None:
    tenant = make_tenant(quota, "small")
    answer = quota.consume(tenant, "api_calls", 2, subject="user-1", route="/search", metadata={"model": "x"})
    assert (answer.items[0].charged, answer.items[0].remaining, answer.items[0].draws[0].source) == (2, 3, "allowance")
    assert answer.meta.headers["X-Quota-Remaining"] == "3" and answer.meta.attempts == 1 and not answer.failed_open
    assert abs(answer.as_of - datetime.now(timezone.utc)) < timedelta(minutes=5)
    check = quota.check(tenant, "api_calls", 4, max_stale_ms=0)
    assert not check.allowed and check.code == "quota_exceeded" and check.items[0].max_allowed_now == 3


def test_several_meters_are_charged_together(quota: Quota, tenant: str) -> None:
    answer = quota.consume(tenant, {"api_calls": 1, "tokens": 250})
    assert {item.meter: item.charged for item in answer.items} == {"api_calls": 1, "tokens": 250}
    with pytest.raises(CreditsExhausted):
        quota.debit(tenant, {"api_calls": 1, "credits": 1})
    assert used(quota, tenant) == 1
    with pytest.raises(ValueError, match="either a meter and an amount"):
        quota.debit(tenant, {"api_calls": 1}, 2)


@pytest.mark.feature("typed-errors")
def test_refusals_are_errors_by_code(quota: Quota) -> None:
    tenant = make_tenant(quota, "small")
    quota.consume(tenant, "api_calls")
    with pytest.raises(QuotaExceeded) as exceeded:
        quota.with_options(retry_denied=False).consume(tenant, "api_calls", 5)
    e = exceeded.value
    assert isinstance(e, Denied) and (e.code, e.status, e.required, e.available, e.meter) == ("quota_exceeded", 429, 5, 4, "api_calls")
    assert e.reset_at and e.reset_at > datetime.now(timezone.utc) and e.retry_after > 0 and e.request_id and e.key
    with pytest.raises(MeterNotInPlan):
        quota.consume(tenant, "credits")
    with pytest.raises(TenantNotFound):
        quota.consume(f"no-{new_key()}", "api_calls")
    with pytest.raises(InvalidArgument) as invalid:
        quota.consume(tenant, "api_calls", 0)
    assert [f.field for f in invalid.value.errors] == ["items[0].amount"]
    with pytest.raises(OperationNotFound):
        quota.refund(tenant, "never")
    quota.api.patch_tenant(tenant=tenant, status="suspended")
    with pytest.raises(TenantSuspended):
        quota.consume(tenant, "api_calls")


@pytest.mark.feature("typed-errors")
def test_rate_limited_names_the_limit(quota: Quota) -> None:
    tenant = make_tenant(quota, "limited")
    impatient = quota.with_options(retry_denied=False)
    with pytest.raises(RateLimited) as limited:
        for _ in range(4):
            impatient.consume(tenant, "api_calls")
    assert limited.value.violated_policies == ["sdk"] and limited.value.retry_after >= 1


@pytest.mark.feature("typed-errors")
def test_a_wrong_key_is_unauthenticated(service: Service) -> None:
    with Quota(service.url, "qk_wrong") as quota, pytest.raises(Unauthenticated):
        quota.check("acme", "api_calls")


@pytest.mark.feature("typed-errors")
def test_an_answer_of_a_proxy_is_no_decision(service: Service, proxy: Proxy, tenant: str) -> None:
    quota = service.quota(url=proxy.url, backoff=FAST)
    proxy.faults.extend([Fault("answer", 404, {"Content-Type": "text/html"}, b"<html>"), Fault("answer", 200, {}, b"<html>")])
    for _ in range(2):
        with pytest.raises(InvalidAnswer) as invalid:
            Quota(proxy.url, service.key).consume(tenant, "api_calls")
        assert isinstance(invalid.value, Undecided)
    assert quota.consume(tenant, "api_calls").items[0].charged == 1


@pytest.mark.feature("typed-errors")
def test_a_code_of_a_later_version_is_an_error_by_its_status(service: Service, proxy: Proxy) -> None:
    quota = Quota(proxy.url, service.key)
    proxy.faults.extend([problem(403, "not_invented_yet"), problem(422, "not_invented_yet"), problem(418, "not_invented_yet")])
    for cls in (errors.Denied, errors.BadRequest, errors.Undecided):
        with pytest.raises(cls) as later:
            quota.check("acme", "api_calls")
        assert later.value.code == "not_invented_yet"


@pytest.mark.feature("idempotency")
def test_the_same_key_charges_once(quota: Quota, tenant: str) -> None:
    key = new_key()
    first, second = quota.debit(tenant, "api_calls", 3, key=key), quota.debit(tenant, "api_calls", 3, key=key)
    assert (first.meta.replayed, second.meta.replayed) == (False, True) and first.operation_id == second.operation_id == key
    assert used(quota, tenant) == 3
    with pytest.raises(IdempotencyKeyReused):
        quota.debit(tenant, "api_calls", 4, key=key)


@pytest.mark.feature("idempotency", "retries")
@pytest.mark.parametrize("operation", ["consume", "debit"])
def test_a_lost_answer_is_asked_for_again_and_charged_once(service: Service, proxy: Proxy, tenant: str, operation: str) -> None:
    retries: list[RetryEvent] = []
    quota = Quota(proxy.url, service.key, backoff=FAST, on_retry=retries.append)
    proxy.faults.extend([Fault("lose"), Fault("lose"), Fault("refuse")])
    answer = getattr(quota, operation)(tenant, "api_calls", 7)
    assert answer.items[0].charged == 7 and answer.meta.replayed and answer.meta.attempts == 4
    assert len(proxy.seen) == 4 and len({(s.key, str(s.body)) for s in proxy.seen}) == 1, "key and body stay the same"
    assert [type(e.error) for e in retries] == [NoAnswer] * 3
    assert used(service.quota(), tenant) == 7
    before = proxy.seen[0].key
    getattr(quota, operation)(tenant, "api_calls", 7)
    assert proxy.seen[-1].key != before, "another operation has another key"


@pytest.mark.feature("idempotency", "retries")
async def test_async_a_lost_answer_is_asked_for_again_and_charged_once(service: Service, proxy: Proxy, tenant: str) -> None:
    proxy.faults.extend([Fault("lose"), Fault("lose")])
    async with AsyncQuota(proxy.url, service.key, backoff=FAST) as quota:
        answer = await quota.consume(tenant, "api_calls", 7)
        assert answer.meta.replayed and answer.meta.attempts == 3
        assert (await quota.balance(tenant, "api_calls")).used == 7


@pytest.mark.feature("idempotency")
def test_a_post_without_key_is_sent_once(service: Service, proxy: Proxy) -> None:
    quota = Quota(proxy.url, service.key, backoff=FAST)
    proxy.faults.append(Fault("lose"))
    with pytest.raises(NoAnswer):
        quota.api.create_key(name="once", scopes=["use"])
    assert len(proxy.seen) == 1


@pytest.mark.feature("retry-after")
def test_503_is_retried_after_the_time_that_it_names(service: Service, proxy: Proxy, tenant: str) -> None:
    waits: list[float] = []
    quota = Quota(proxy.url, service.key, on_retry=lambda e: waits.append(e.wait))
    proxy.faults.append(problem(503, "unavailable", Retry_After="1"))
    assert quota.consume(tenant, "api_calls").meta.attempts == 2
    assert 1 <= waits[0] <= 1.1


@pytest.mark.feature("retry-after")
def test_a_long_retry_after_is_the_callers_business(service: Service, proxy: Proxy, tenant: str) -> None:
    proxy.faults.append(problem(429, "quota_exceeded", Retry_After="86400"))
    with pytest.raises(QuotaExceeded) as exceeded:
        Quota(proxy.url, service.key).consume(tenant, "api_calls")
    assert exceeded.value.retry_after == 86400 and len(proxy.seen) == 1


@pytest.mark.feature("retry-after")
def test_a_retry_after_beyond_bounds_is_not_none(service: Service, proxy: Proxy, tenant: str) -> None:
    for seconds in ("2147483648", "6324480000", "9" * 400):
        proxy.seen.clear()
        proxy.faults.append(problem(429, "quota_exceeded", Retry_After=seconds))
        with pytest.raises(QuotaExceeded) as exceeded:
            Quota(proxy.url, service.key).consume(tenant, "api_calls")
        assert exceeded.value.retry_after == min(float(seconds), threading.TIMEOUT_MAX) and len(proxy.seen) == 1


def as_floats(value: object) -> object:
    """Returns a value in which numbers are floats, as most languages read them."""
    if isinstance(value, dict):
        return {name: as_floats(member) for name, member in value.items()}
    if isinstance(value, list):
        return [as_floats(element) for element in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def test_odd_metadata_is_read_as_it_was_sent(service: Service, quota: Quota, tenant: str) -> None:
    values = [json.loads(line) for line in ODD_METADATA.read_text("utf-8").splitlines()]
    for number, value in enumerate(values):
        quota.debit(tenant, {"api_calls": 1}, metadata=value, key=f"odd-{number}")
        quota.api.patch_tenant(tenant=tenant, metadata=value)
        assert as_floats(quota.api.get_tenant(tenant=tenant).metadata) == as_floats(value)
    found = {e.operation_id: e.metadata for e in quota.api.all_entries(tenant=tenant, meter="api_calls") if e.kind == "debit"}
    assert [as_floats(found[f"odd-{n}"] or {}) for n in range(len(values))] == [as_floats(v) for v in values]
    with pytest.raises(InvalidArgument) as refused:
        quota.api.patch_tenant(tenant=tenant, metadata={"n": 10**309})
    assert refused.value.errors[0].field == "metadata"


@pytest.mark.feature("budget")
def test_a_failing_service_gets_few_retries(service: Service, proxy: Proxy) -> None:
    proxy.down = problem(503, "unavailable")
    quota = Quota(proxy.url, service.key, backoff=Backoff(base=0.001, cap=0.001))
    for _ in range(40):
        with pytest.raises(errors.Unavailable):
            quota.with_options(deadline=20).check("acme", "api_calls")
    assert 50 <= len(proxy.seen) <= 40 + 10 + 4, "copies of a client share its budget"


def test_an_error_says_whether_it_may_have_taken_effect(service: Service, proxy: Proxy, dead_url: str, tenant: str) -> None:
    def unknown(url: str, *faults: Fault, read: bool = False) -> bool:
        proxy.faults.extend(faults)
        quota = Quota(url, service.key, backoff=FAST, attempts=max(len(faults), 1))
        with pytest.raises(QuotaError) as failed:
            quota.api.get_tenant(tenant=tenant) if read else quota.consume(tenant, "api_calls")
        return failed.value.outcome_unknown

    assert not unknown(dead_url), "nothing was sent"
    assert not unknown(proxy.url, problem(503, "unavailable")) and not unknown(proxy.url, problem(429, "rate_limited"))
    assert unknown(proxy.url, Fault("lose")) and unknown(proxy.url, problem(503, "outcome_unknown")) and unknown(proxy.url, Fault("answer", 502))
    assert unknown(proxy.url, Fault("lose"), problem(503, "unavailable")), "the first attempt counts"
    assert not unknown(proxy.url, Fault("lose"), problem(403, "forbidden")), "the last answer is about the operation"
    for fault in (Fault("lose"), Fault("answer", 502), Fault("answer", 200, {}, b"{"), problem(503, "outcome_unknown")):
        assert not unknown(proxy.url, fault, read=True), "a read has no outcome"


@pytest.mark.feature("timeouts")
def test_a_hanging_service_is_given_up(service: Service, proxy: Proxy) -> None:
    proxy.down = Fault("hang")
    quota = Quota(proxy.url, service.key, timeout=0.2, deadline=0.5, backoff=FAST)
    with pytest.raises(NoAnswer, match="no answer within"):
        quota.consume("acme", "api_calls")
    assert 2 <= len(proxy.seen) <= 4


@pytest.mark.feature("timeouts")
async def test_async_a_hanging_service_is_given_up(service: Service, proxy: Proxy) -> None:
    proxy.down = Fault("hang")
    async with AsyncQuota(proxy.url, service.key, timeout=0.2, deadline=0.5, backoff=FAST) as quota:
        with pytest.raises(NoAnswer, match="no answer within"):
            await quota.consume("acme", "api_calls")


@pytest.mark.feature("timeouts")
async def test_async_an_answer_that_drips_is_given_up() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for _ in range(100):  # each byte comes well within a timeout between bytes
            writer.write(b"X-Drip: 1\r\n")
            await asyncio.sleep(0.05)
            if writer.is_closing():
                return

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    async with server, AsyncQuota(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "k", timeout=0.5, attempts=1) as quota:
        with pytest.raises(NoAnswer, match="no answer within"):
            await quota.check("acme", "api_calls")


def test_a_request_does_not_wait_for_the_one_before(service: Service, tenant: str) -> None:
    with Quota(service.url, service.key) as quota:
        took = []
        for _ in range(40):
            began = time.perf_counter()
            quota.check(tenant, "api_calls")
            took.append(time.perf_counter() - began)
        with quota._transport.connections.get().stream("GET", f"{service.url}/v1/openapi.yaml") as response:
            connection = response.extensions["network_stream"].get_extra_info("socket")
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert min(took[20:]) < 0.03, "with Nagle's algorithm each takes 40 ms more"


def test_a_client_serves_several_event_loops(service: Service, tenant: str) -> None:
    quota = AsyncQuota(service.url, service.key)
    for _ in range(3):
        assert asyncio.run(quota.consume(tenant, "api_calls")).items[0].charged == 1


@pytest.mark.feature("refund")
def test_use_refunds_when_the_work_fails(quota: Quota, tenant: str) -> None:
    with quota.use(tenant, "api_calls", 5):
        pass
    with pytest.raises(ZeroDivisionError), quota.use(tenant, "api_calls", 5):
        _ = 1 / 0
    balance = quota.balance(tenant, "api_calls")
    assert (balance.used, balance.refunded) == (10, 5)


@pytest.mark.feature("refund")
async def test_async_use_refunds_when_the_work_fails(aquota: AsyncQuota, tenant: str) -> None:
    with pytest.raises(ZeroDivisionError):
        async with aquota.use(tenant, "api_calls", 5):
            _ = 1 / 0
    balance = await aquota.balance(tenant, "api_calls")
    assert (balance.used, balance.refunded) == (5, 5)


@pytest.mark.feature("refund")
def test_refunds_in_parts_end_at_the_debit(quota: Quota, tenant: str) -> None:
    operation = quota.debit(tenant, "api_calls", 10).operation_id
    assert quota.refund(tenant, operation, amount=4).items[0].refunded == 4
    assert quota.refund(tenant, operation).items[0].refunded == 6
    with pytest.raises(RefundExceedsDebit):
        quota.refund(tenant, operation)


def test_the_environment_configures_a_client(service: Service, tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTASVC_URL", service.url + "/")
    monkeypatch.setenv("QUOTASVC_KEY", service.key)
    with Quota() as quota:
        assert quota.check(tenant, "api_calls").allowed
    monkeypatch.delenv("QUOTASVC_KEY")
    with pytest.raises(ValueError, match="key is required"):
        Quota()
    with pytest.raises(ValueError, match="url must begin with http"):
        Quota("localhost:8080", "k")


def test_request_sends_what_the_sdk_does_not_know(quota: Quota, tenant: str) -> None:
    quota.debit(tenant, "api_calls", 3)
    csv = quota.request("GET", f"/v1/tenants/{tenant}/statements/api_calls/current?format=csv")
    assert b"used" in csv
    with pytest.raises(QuotaError):
        quota.request("GET", "/v1/meters/none")


def test_times_need_a_zone(quota: Quota, tenant: str) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        quota.api.get_balance(tenant=tenant, meter="api_calls", as_of=datetime(2026, 1, 1))
    usage = quota.api.list_usage(
        tenant=tenant, meter="api_calls", from_=datetime.now(timezone.utc) - timedelta(days=1), to=datetime.now(timezone.utc), by="hour"
    )
    assert usage.items == []


@pytest.mark.feature("paging")
def test_all_entries_asks_for_page_after_page(quota: Quota, tenant: str) -> None:
    keys = [quota.debit(tenant, "api_calls").operation_id for _ in range(7)]
    entries = list(quota.api.all_entries(tenant=tenant, meter="api_calls", kind="debit", limit=3))
    assert [e.operation_id for e in entries] == keys
    assert len(quota.api.list_entries(tenant=tenant, kind="debit", limit=3).items) == 3


@pytest.mark.feature("paging")
async def test_async_all_entries_asks_for_page_after_page(aquota: AsyncQuota, tenant: str) -> None:
    for _ in range(4):
        await aquota.debit(tenant, "api_calls")
    entries = [e async for e in aquota.api.all_entries(tenant=tenant, meter="api_calls", kind="debit", limit=2)]
    assert len(entries) == 4
