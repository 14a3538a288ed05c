"""When a call is sent again, and how long it waits: without a service."""

from __future__ import annotations

import threading

import pytest

from quotasvc._backoff import Backoff, Budget, retry_after
from quotasvc._call import Attempts, Call, Retry


@pytest.mark.feature("retries")
def test_backoff_doubles_to_its_cap_and_jitters_from_zero() -> None:
    highest = Backoff(random=lambda: 1.0)
    assert [highest.wait(n) for n in (1, 2, 3, 7, 8, 1000)] == pytest.approx([0.1, 0.2, 0.4, 6.4, 10, 10])
    assert Backoff(random=lambda: 0.0).wait(5) == 0
    assert 0 <= Backoff().wait(3) <= 0.4


@pytest.mark.feature("retry-after")
def test_backoff_never_waits_less_than_retry_after() -> None:
    assert Backoff(random=lambda: 0.0).wait(1, after=7) == 7
    assert Backoff(random=lambda: 1.0).wait(1, after=7) == pytest.approx(7.1)
    longest = Backoff(random=lambda: 1.0).wait(1, after=threading.TIMEOUT_MAX)
    assert longest == threading.TIMEOUT_MAX and threading.Lock().acquire(timeout=longest), "no thread can wait so long"


@pytest.mark.feature("retry-after")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"Retry-After": "3"}, 3),
        ({"Retry-After": "-1"}, 0),
        ({"Retry-After": "soon"}, 0),
        ({"Retry-After": "2147483648"}, min(2**31, threading.TIMEOUT_MAX)),
        ({"Retry-After": "9" * 30}, threading.TIMEOUT_MAX),
        ({"Retry-After": "9" * 5000}, threading.TIMEOUT_MAX),
        ({"Retry-After": "Fri, 01 Nov 9999 10:00:09 GMT", "Date": "Sun, 01 Nov 2026 10:00:02 GMT"}, threading.TIMEOUT_MAX),
        ({"Retry-After": "Sun, 01 Nov 2026 10:00:09 GMT", "Date": "Sun, 01 Nov 2026 10:00:02 GMT"}, 7),
        ({"Retry-After": "Sun, 01 Nov 2026 10:00:00 GMT", "Date": "Sun, 01 Nov 2026 10:00:02 GMT"}, 0),
        ({"Retry-After": "Sun, 01 Nov 2026 10:00:09 GMT"}, 0),
        ({"Retry-After": "Sun, 01 Nov 2026 10:00:09 GMT", "Date": "Sun, 01 Nov 2026 10:00:02"}, 0),
    ],
)
def test_retry_after_reads_seconds_and_dates(headers: dict[str, str], seconds: float) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.feature("budget")
def test_budget_is_ten_retries_and_a_tenth_of_the_requests() -> None:
    budget = Budget()
    assert [budget.take() for _ in range(11)] == [True] * 10 + [False]
    for _ in range(9):
        budget.earn()
    assert not budget.take()
    budget.earn()
    assert budget.take()
    for _ in range(1000):
        budget.earn()
    assert sum(budget.take() for _ in range(50)) == 10, "more than ten are never saved"


def attempts(clock: list[float], repeatable: bool = True, **policy: object) -> Attempts:
    retry = Retry(backoff=Backoff(random=lambda: 0.5), **policy)  # type: ignore[arg-type]
    return Attempts(retry, Budget(), repeatable, lambda: clock[0])


@pytest.mark.feature("retries")
@pytest.mark.parametrize(
    ("status", "again"),
    [(0, True), (429, True), (502, True), (503, True), (504, True), (400, False), (402, False), (403, False), (409, False), (500, False)],
)
def test_attempts_repeat_what_may_succeed_later(status: int, again: bool) -> None:
    a = attempts([0.0])
    a.begin()
    assert (a.wait(status, 0) is not None) == again


@pytest.mark.feature("retries")
def test_attempts_end_by_number_key_wait_and_deadline() -> None:
    a = attempts([0.0], attempts=2)
    a.begin()
    assert a.wait(503, 1) == pytest.approx(1.05)
    a.begin()
    assert a.wait(503, 1) is None, "two attempts are all"

    a = attempts([0.0], repeatable=False)
    a.begin()
    assert a.wait(0, 0) is None, "it might take effect twice"

    a = attempts([0.0], max_wait=30)
    a.begin()
    assert a.wait(429, 31) is None, "the caller gets the refusal at once"
    assert a.wait(429, 30) is None, "the deadline ends before"

    a = attempts([0.0], retry_denied=False)
    a.begin()
    assert a.wait(429, 1) is None
    assert a.wait(503, 1) is not None


@pytest.mark.feature("timeouts")
def test_attempts_share_the_deadline() -> None:
    clock = [0.0]
    a = attempts(clock, timeout=5, deadline=8)
    assert a.begin() == 5
    clock[0] = 5
    assert a.begin() == 3
    clock[0] = 7.99
    assert a.wait(503, 1) is None


@pytest.mark.feature("timeouts")
@pytest.mark.parametrize("name", ["timeout", "deadline", "max_wait"])
def test_retry_refuses_times_that_are_not_positive(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be above 0"):
        Retry(**{name: 0})


def test_call_quotes_ids_and_refuses_those_that_name_another_resource() -> None:
    call = Call("GET", "/v1/tenants/{tenant}", path={"tenant": "a/b ?c"}, query={"limit": 5, "explain": True, "cursor": None, "q": "a&b"})
    assert call.url() == "/v1/tenants/a%2Fb%20%3Fc?limit=5&explain=true&q=a%26b"
    members = Call("GET", "/v1/tenants", query={"metadata": {"segment": "a&b", "vip": "true"}, "plan": None, "status": "active"})
    assert members.url() == "/v1/tenants?metadata.segment=a%26b&metadata.vip=true&status=active"
    for id in ("", ".", ".."):
        with pytest.raises(ValueError, match="tenant must be an id"):
            Call("GET", "/v1/tenants/{tenant}", path={"tenant": id}).url()
