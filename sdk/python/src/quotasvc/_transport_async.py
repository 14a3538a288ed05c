"""Sends calls and retries them."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import httpx

from quotasvc import errors
from quotasvc._backoff import Budget, retry_after
from quotasvc._call import MAX_ANSWER, Attempts, Call, Retry, RetryEvent, no_delay
from quotasvc._decode import Answer, Meta, decode
from quotasvc._version import __version__

A = TypeVar("A", bound=Answer)

log = logging.getLogger("quotasvc")

# After these the service has not seen the request.
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class AsyncTransport:
    """The connection to a service. Copies with other settings share its connections and its retry budget."""

    def __init__(
        self,
        url: str,
        key: str,
        retry: Retry,
        http: httpx.AsyncClient | None,
        on_retry: Callable[[RetryEvent], None] | None,
    ) -> None:
        self.url = url.rstrip("/")
        self.key = key
        self.retry = retry
        self.budget = Budget()
        self.on_retry = on_retry
        self.connections = AsyncConnections(http)

    def with_retry(self, **changes: Any) -> AsyncTransport:
        """Returns a copy with another policy."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.retry = replace(self.retry, **changes)
        return copy

    async def call(self, call: Call, answer: type[A]) -> A:
        """Sends a call and returns its answer."""
        raw, meta = await self.send(call)
        try:
            return decode(answer, raw, meta)
        except ValueError as cause:
            error = errors.InvalidAnswer(f"the answer is no {answer.__name__}: {cause}", meta=meta, key=call.key)
            error.outcome_unknown = call.changes
            raise error from cause

    async def call_empty(self, call: Call) -> None:
        """Sends a call that has no answer."""
        await self.send(call)

    async def send(self, call: Call) -> tuple[bytes, Meta]:
        """Sends a call until it succeeds, is refused for good, or the policy ends it. It raises a QuotaError then."""
        attempts = Attempts(self.retry, self.budget, call.repeatable, time.monotonic)
        url, content = self.url + call.url(), call.content()
        headers = call.header_fields()
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        headers["User-Agent"] = f"quotasvc-python/{__version__}"
        unknown = False  # of any attempt so far
        while True:
            try:
                raw, meta = await self.attempt(call, url, headers, content, attempts)
                if 200 <= meta.status < 300:
                    return raw, meta
                error: errors.QuotaError = errors.from_answer(raw, meta, retry_after(meta.headers), call.key)
            except errors.NoAnswer as lost:
                error = lost
            unknown = call.changes and (error.outcome_unknown or unknown and error.says_nothing)
            error.outcome_unknown = unknown
            wait = attempts.wait(error.status, error.retry_after)
            if wait is None:
                raise error
            self.tell(RetryEvent(call.method, call.template, attempts.count, wait, error))
            await asyncio.sleep(wait)

    async def attempt(
        self, call: Call, url: str, headers: dict[str, str], content: bytes | None, attempts: Attempts
    ) -> tuple[bytes, Meta]:
        """Sends a call once. It raises NoAnswer if there is no answer in time."""
        seconds = attempts.begin()
        where = f"{call.method} {call.template}"
        try:
            exchange = self.exchange(call, url, headers, content, seconds, attempts.count)
            # httpx bounds each step of an attempt; this bounds them together, for an answer that drips.
            return await asyncio.wait_for(exchange, 1.5 * seconds + 0.1)
        except (httpx.TimeoutException, TimeoutError) as error:
            raise self.no_answer(f"{where}: no answer within {seconds:.3g} s", call, error, attempts.count) from error
        except httpx.RequestError as error:
            raise self.no_answer(f"{where}: {error or type(error).__name__}", call, error, attempts.count) from error

    def no_answer(self, detail: str, call: Call, cause: Exception, attempt: int) -> errors.NoAnswer:
        """Returns the error for an attempt without answer."""
        error = errors.NoAnswer(detail, meta=Meta(attempts=attempt), key=call.key)
        error.outcome_unknown = not isinstance(cause, NOT_SENT)
        return error

    async def exchange(
        self, call: Call, url: str, headers: dict[str, str], content: bytes | None, seconds: float, attempt: int
    ) -> tuple[bytes, Meta]:
        """Sends a request and reads its answer."""
        end = time.monotonic() + 1.5 * seconds
        async with self.connections.get().stream(
            call.method, url, headers=headers, content=content, timeout=seconds, follow_redirects=False
        ) as response:
            no_delay(response)
            raw = bytearray()
            async for part in response.aiter_bytes():
                raw += part
                if len(raw) > MAX_ANSWER:
                    raise errors.NoAnswer(f"{call.method} {call.template}: the answer has more than {MAX_ANSWER} bytes", key=call.key)
                if time.monotonic() > end:
                    raise TimeoutError
            return bytes(raw), Meta(response.status_code, response.headers, attempt)

    def tell(self, event: RetryEvent) -> None:
        """Calls the hook. Its errors are logged: they must not fail a request."""
        log.debug("%s %s: attempt %d failed (%s), retry in %.3f s", event.method, event.path, event.attempt, event.error, event.wait)
        if self.on_retry:
            try:
                self.on_retry(event)
            except Exception:
                log.exception("the hook on_retry failed")

    async def aclose(self) -> None:
        """Closes the connections."""
        await self.connections.aclose()


class AsyncConnections:
    """The HTTP client, made at first use. A process that was forked makes its own."""

    def __init__(self, http: httpx.AsyncClient | None) -> None:
        self.given = http
        self.own: httpx.AsyncClient | None = None
        self.lock = threading.Lock()
        self.owner: object = None

    def get(self) -> httpx.AsyncClient:
        """Returns the client of this process."""
        if self.given is not None:
            return self.given
        owner: object = os.getpid()
        owner = (owner, asyncio.get_running_loop())  # async only
        with self.lock:
            if self.own is None or self.owner != owner:
                self.own, self.owner = httpx.AsyncClient(limits=LIMITS), owner
            return self.own

    async def aclose(self) -> None:
        """Closes the client, unless the caller gave it."""
        if self.given is None and self.own is not None:
            await self.own.aclose()
            self.own = None


# Enough for a backend of some hundred requests at once; further ones wait for a connection, within their timeout.
LIMITS = httpx.Limits(max_connections=200, max_keepalive_connections=50, keepalive_expiry=30)
