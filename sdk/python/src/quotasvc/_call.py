"""One operation at the service, and when it is sent again. Pure: it sends nothing."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

import httpx

from quotasvc._backoff import Backoff, Budget
from quotasvc._decode import encode, time_text
from quotasvc.errors import QuotaError

RETRYABLE = frozenset({429, 502, 503, 504})  # not 500: the same request would fail in the same way

MAX_ANSWER = 64 << 20  # bytes; a page of 500 entries with metadata has about 3 MiB


def new_key() -> str:
    """Returns a new Idempotency-Key: 128 random bits."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class Call:
    """A request. Its key and body are the same in every attempt, so that it takes effect once."""

    method: str
    template: str  # the path, with {names}
    path: Mapping[str, str | int] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str | None] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    key: str = ""
    repeatable: bool = True  # sent twice it takes effect once

    @property
    def changes(self) -> bool:
        """Whether the operation can change something. A read has no outcome that could be unknown."""
        return self.method != "GET"

    def url(self) -> str:
        """Returns path and query."""
        url = self.template
        for name, value in self.path.items():
            if value in ("", ".", ".."):  # they would name another resource
                raise ValueError(f"{name} must be an id, not {value!r}")
            url = url.replace("{" + name + "}", quote(str(value), safe=""))
        given = [f"{quote(name, safe='')}={quote(_query(value), safe='')}" for name, value in _flat(self.query)]
        return url + ("?" + "&".join(given) if given else "")

    def content(self) -> bytes | None:
        """Returns the body."""
        return None if self.body is None else encode(self.body)

    def header_fields(self) -> dict[str, str]:
        """Returns the headers of this request alone."""
        fields = {name: value for name, value in self.headers.items() if value is not None}
        if self.key:
            fields["Idempotency-Key"] = self.key
        if self.body is not None:
            fields["Content-Type"] = "application/json"
        return fields


def _flat(query: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Returns the parameters that are given. Each member of a mapping is a parameter of its own."""
    for name, value in query.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{member}", wanted) for member, wanted in value.items())
        elif value is not None:
            yield name, value


def _query(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return time_text(value) if isinstance(value, datetime) else str(value)


@dataclass(frozen=True)
class Retry:
    """How a client waits and retries."""

    timeout: float = 5.0  # seconds for one attempt: what the service takes at most to refuse
    deadline: float = 30.0  # seconds for all attempts and waits of one call
    attempts: int = 5
    max_wait: float = 30.0  # seconds; if the service asks for more, the caller gets the refusal at once
    retry_denied: bool = True  # retry 429; False in a web handler, whose client waits
    backoff: Backoff = field(default_factory=Backoff)

    def __post_init__(self) -> None:
        for name, minimum in (("timeout", 0), ("deadline", 0), ("max_wait", 0)):
            if not getattr(self, name) > minimum:
                raise ValueError(f"{name} must be above 0 seconds")
        if self.attempts < 1:
            raise ValueError("attempts must be at least 1")


@dataclass(frozen=True)
class RetryEvent:
    """An attempt that failed, and after which the call is sent again."""

    method: str
    path: str  # with {names} in place of ids
    attempt: int
    wait: float  # seconds until the next attempt
    error: QuotaError


def no_delay(response: httpx.Response) -> None:
    """Lets the system send the next request on this connection at once.

    httpcore sends the head and the body of a request one after the other. Before version 0.17 it left the default of TCP, by which the body
    waits for the acknowledgement of the head: 40 ms. The first request on a connection does not wait.
    """
    stream = response.extensions.get("network_stream")
    connection = stream.get_extra_info("socket") if stream is not None else None
    if connection is not None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            pass  # a socket of another kind


class Attempts:
    """The attempts of one call."""

    def __init__(self, policy: Retry, budget: Budget, repeatable: bool, now: Callable[[], float]) -> None:
        self.policy, self.budget, self.repeatable, self.now = policy, budget, repeatable, now
        self.count = 0
        self.end = now() + policy.deadline
        budget.earn()

    def begin(self) -> float:
        """Begins an attempt and returns its timeout."""
        self.count += 1
        return max(min(self.policy.timeout, self.end - self.now()), 0.001)

    def wait(self, status: int, after: float) -> float | None:
        """Returns the wait before another attempt; None: there is none. status 0 means that there was no answer."""
        policy = self.policy
        if status and status not in RETRYABLE or status == 429 and not policy.retry_denied:
            return None
        if self.count >= policy.attempts or not self.repeatable or after > policy.max_wait:
            return None
        wait = max(after, min(policy.backoff.wait(self.count, after), policy.max_wait))
        if self.now() + wait >= self.end or not self.budget.take():
            return None
        return wait
