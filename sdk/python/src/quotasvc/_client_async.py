"""The client: what most programs use."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Literal

import httpx

from quotasvc import errors, models, params
from quotasvc._api_async import AsyncApi
from quotasvc._backoff import Backoff
from quotasvc._call import Call, Retry, RetryEvent, new_key
from quotasvc._failopen import FailOpen, FailOpenEvent, opened_check, opened_debit
from quotasvc._finish import finish  # async only
from quotasvc._transport_async import AsyncTransport

log = logging.getLogger("quotasvc")

class AsyncQuota:
    """A client of quotasvc. Make one for the whole program: it has the connections and the retry budget. It is safe for concurrent use.

    `api` has every operation of the contract; the methods here are those that backends need, with the defaults that they need.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = 5.0,
        deadline: float = 30.0,
        attempts: int = 5,
        max_wait: float = 30.0,
        retry_denied: bool = True,
        backoff: Backoff | None = None,
        fail_open: Collection[str] = (),
        on_fail_open: Callable[[FailOpenEvent], None] | None = None,
        on_retry: Callable[[RetryEvent], None] | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        """Makes a client. It sends nothing yet.

        url, key: of the service; by default QUOTASVC_URL (else http://127.0.0.1:8080) and QUOTASVC_KEY.
        timeout: seconds for one attempt. deadline: seconds for all attempts and waits of one call.
        attempts: the most attempts of one call. max_wait: the longest wait; if the service asks for more, the refusal is raised at once.
        retry_denied: whether 429 is retried. In a web handler it should not be: its client waits. The middlewares do not.
        fail_open: meters whose requests pass while the service cannot decide. on_fail_open is called with each, for a metric.
        on_retry: called before each retry, for a metric. Hooks run in the caller's thread and must return soon.
        http: an own HTTP client, for certificates and proxies. The caller closes it.
        """
        url = url or os.environ.get("QUOTASVC_URL") or "http://127.0.0.1:8080"
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"url must begin with http:// or https://, not {url!r}")
        key = key if key is not None else os.environ.get("QUOTASVC_KEY", "")
        if not key and http is None:
            raise ValueError("key is required: give it, or set QUOTASVC_KEY")
        retry = Retry(timeout, deadline, attempts, max_wait, retry_denied, backoff or Backoff())
        self._transport = AsyncTransport(url, key, retry, http, on_retry)
        self._fail_open = FailOpen(fail_open, on_fail_open)
        self.api = AsyncApi(self._transport)

    def with_options(
        self,
        *,
        timeout: float | None = None,
        deadline: float | None = None,
        attempts: int | None = None,
        max_wait: float | None = None,
        retry_denied: bool | None = None,
    ) -> AsyncQuota:
        """Returns a client with other options that shares connections and retry budget."""
        options = {"timeout": timeout, "deadline": deadline, "attempts": attempts, "max_wait": max_wait, "retry_denied": retry_denied}
        copy = object.__new__(type(self))
        copy._transport = self._transport.with_retry(**{name: value for name, value in options.items() if value is not None})
        copy._fail_open = self._fail_open
        copy.api = AsyncApi(copy._transport)
        return copy

    async def check(
        self,
        tenant: str,
        meter: str | Mapping[str, int],
        amount: int = 1,
        *,
        subject: str | None = None,
        route: str | None = None,
        ip: str | None = None,
        method: str | None = None,
        max_stale_ms: int | None = None,
    ) -> models.CheckAnswer:
        """Asks whether a consume would be allowed, and charges nothing. A denial is an answer, not an error: see `allowed` and `code`."""
        items = amounts(meter, amount)
        try:
            with self._fail_open.asking(items):
                return await self.api.check(
                    tenant=tenant, items=listed(items), subject=subject, route=route, ip=ip, method=method, max_stale_ms=max_stale_ms
                )
        except errors.Undecided as error:
            event = FailOpenEvent("check", tenant, items, subject, "", error)
            if self._fail_open.lets_pass(event):
                return opened_check(event)
            raise

    async def consume(
        self,
        tenant: str,
        meter: str | Mapping[str, int],
        amount: int = 1,
        *,
        key: str | None = None,
        subject: str | None = None,
        route: str | None = None,
        ip: str | None = None,
        method: str | None = None,
        mode: params.Mode | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> models.DebitAnswer:
        """Charges the rate limits and debits the balance, or neither. A refusal raises `Denied`.

        meter: one meter, or amounts by meter. key: the Idempotency-Key; give one that is stored with the work if a restart of the program
        may repeat it, else a new one is made and kept over the retries of this call.
        """
        items, key = amounts(meter, amount), key or new_key()
        try:
            with self._fail_open.asking(items, key):
                return await self.api.consume(
                    tenant=tenant, items=listed(items), subject=subject, route=route, ip=ip, method=method, mode=mode,
                    metadata=metadata, key=key,
                )  # fmt: skip
        except errors.Undecided as error:
            return self._opened("consume", tenant, items, subject, key, error)

    async def debit(
        self,
        tenant: str,
        meter: str | Mapping[str, int],
        amount: int = 1,
        *,
        key: str | None = None,
        subject: str | None = None,
        mode: params.Mode | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> models.DebitAnswer:
        """Debits the balance without asking rate limits. Otherwise it is like `consume`."""
        items, key = amounts(meter, amount), key or new_key()
        try:
            with self._fail_open.asking(items, key):
                return await self.api.debit(tenant=tenant, items=listed(items), subject=subject, mode=mode, metadata=metadata, key=key)
        except errors.Undecided as error:
            return self._opened("debit", tenant, items, subject, key, error)

    def _opened(
        self, operation: str, tenant: str, items: Mapping[str, int], subject: str | None, key: str, error: errors.Undecided
    ) -> models.DebitAnswer:
        """Returns the answer of a debit that fails open, else raises the error."""
        event = FailOpenEvent(operation, tenant, items, subject, key, error)
        if self._fail_open.lets_pass(event):
            return opened_debit(event)
        raise error

    async def refund(
        self,
        tenant: str,
        operation_id: str,
        *,
        amount: int | None = None,
        meter: str | None = None,
        key: str | None = None,
        reason: str | None = None,
        on_expired: params.OnExpired | None = None,
    ) -> models.RefundAnswer:
        """Refunds a debit, a consume or a capture; without `amount` all that was not refunded yet."""
        return await self.api.refund(
            tenant=tenant, operation_id=operation_id, amount=amount, meter=meter, key=key, reason=reason, on_expired=on_expired
        )

    async def balance(self, tenant: str, meter: str, *, subject: str | None = None) -> models.Balance:
        """Returns a balance."""
        return await self.api.get_balance(tenant=tenant, meter=meter, subject=subject)

    @asynccontextmanager
    async def use(
        self,
        tenant: str,
        meter: str | Mapping[str, int],
        amount: int = 1,
        *,
        key: str | None = None,
        subject: str | None = None,
        route: str | None = None,
        ip: str | None = None,
        method: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[models.DebitAnswer]:
        """Consumes for the work in its block, and refunds if the work raises an exception.

        Give no key that was used before: a refund would take back the earlier work's use.
        """
        answer = await self.consume(
            tenant, meter, amount, key=key, subject=subject, route=route, ip=ip, method=method, metadata=metadata
        )
        try:
            yield answer
        except Exception:
            if not answer.failed_open:
                await finish(self.refund_failed(tenant, answer.operation_id))
            raise

    async def refund_failed(self, tenant: str, operation_id: str) -> bool:
        """Refunds an operation whose work failed. It raises nothing: it logs what it could not refund, and returns False then."""
        try:
            await self.refund(tenant, operation_id, key=derived(operation_id, "refund"), reason="the work failed")
            return True
        except errors.OperationNotFound:
            return True  # it was never charged
        except errors.QuotaError as error:
            log.error("quota: operation %s of tenant %s was not refunded: %s", operation_id, tenant, error)
            return False

    def hold(
        self,
        tenant: str,
        meter: str,
        amount: int,
        *,
        ttl: int | None = None,
        hold_id: str | None = None,
        subject: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        overrun: Literal["best_effort", "drain"] = "best_effort",
    ) -> AsyncHold:
        """Reserves units for work of unknown cost, such as a stream.

            async with quota.hold("acme", "tokens", 4000) as hold:
                async for part in stream:
                    hold.add(part.tokens)

        The end of the block captures what was added and returns the rest, also if the block is left by an exception: what was used was
        used. A block that added nothing returns all. ttl: seconds that the service keeps the hold; an hour by default.
        overrun: how use beyond the hold is debited if the balance does not cover it: as far as it does, or as overage.
        """
        return AsyncHold(self, tenant, meter, amount, ttl, hold_id or f"hold-{new_key()}", subject, metadata, overrun)

    async def request(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, key: str | None = None) -> bytes:
        """Sends any request, with retries and typed errors, and returns the body of the answer: for CSV, or for what is newer than this SDK.

        A POST gets a new Idempotency-Key unless it has one. A POST or PATCH is repeated only if you give a key: not every one heeds it.
        """
        method = method.upper()
        repeatable = method in ("GET", "PUT", "DELETE") or key is not None
        call = Call(method, path, body=body, key=key or (new_key() if method == "POST" else ""), repeatable=repeatable)
        return (await self._transport.send(call))[0]

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._transport.aclose()

    async def __aenter__(self) -> AsyncQuota:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()


class AsyncHold:
    """Units that are reserved for work under way. See `AsyncQuota.hold`. One task or thread uses it."""

    def __init__(
        self,
        quota: AsyncQuota,
        tenant: str,
        meter: str,
        amount: int,
        ttl: int | None,
        hold_id: str,
        subject: str | None,
        metadata: Mapping[str, Any] | None,
        overrun: Literal["best_effort", "drain"],
    ) -> None:
        self._quota, self._ttl, self._metadata, self._overrun = quota, ttl, metadata, overrun
        self.tenant, self.meter, self.amount, self.hold_id, self.subject = tenant, meter, amount, hold_id, subject
        self.used = 0  # added and not captured yet
        self.captured = 0  # charged so far
        self.shortfall = 0  # used, and not covered by the balance; with overrun "drain" it is recorded as overage
        self.failed_open = False  # the service did not answer, and the meter fails open
        self.answer: models.HoldAnswer | None = None  # the service's answer to the reservation
        self._settled = False
        self._changes = 0

    async def open(self) -> AsyncHold:
        """Reserves the units. A refusal raises `Denied`."""
        items = {self.meter: self.amount}
        try:
            with self._quota._fail_open.asking(items, self.hold_id):
                self.answer = await self._quota.api.hold(
                    tenant=self.tenant, hold_id=self.hold_id, items=listed(items), subject=self.subject, ttl_seconds=self._ttl,
                    metadata=self._metadata, key=self.hold_id,
                )  # fmt: skip
        except errors.Undecided as error:
            event = FailOpenEvent("hold", self.tenant, items, self.subject, self.hold_id, error)
            if not self._quota._fail_open.lets_pass(event):
                raise
            self.failed_open = True
        return self

    def add(self, units: int) -> None:
        """Notes use. It sends nothing."""
        if units < 0:
            raise ValueError("units must be at least 0")
        self.used += units

    async def capture(self, used: int | None = None) -> None:
        """Charges what was used, by default what was added, and returns the rest. The hold is settled then."""
        if used is not None:
            if used < 0:
                raise ValueError("used must be at least 0")
            self.used = used
        if self._settled:
            raise errors.HoldNotActive(f"hold {self.hold_id} is settled already")
        if self.used == 0:
            await self.release()
            return
        if self.failed_open:
            await self._debit_rest("undecided")
        else:
            await self._capture()
        self._settled = True

    async def _capture(self) -> None:
        """Captures all use; what the hold cannot pay is debited."""
        try:
            await self._captured(self.used)
        except (errors.HoldNotActive, errors.HoldNotFound):
            await self._debit_rest("late")  # it has expired
        except (errors.QuotaExceeded, errors.CreditsExhausted):
            if self.used > self.amount:
                await self._captured(self.amount)
            await self._debit_rest("overrun")

    async def _captured(self, units: int) -> None:
        await self._quota.api.capture_hold(
            hold_id=self.hold_id, tenant=self.tenant, items=listed({self.meter: units}), final=True, key=self._change("capture")
        )
        self.captured += units
        self.used -= units

    async def _debit_rest(self, why: str) -> None:
        """Debits use that no hold pays: the work is done, so it is not refused."""
        answer = await self._quota.api.debit(
            tenant=self.tenant, items=listed({self.meter: self.used}), subject=self.subject,
            mode="best_effort" if why != "overrun" else self._overrun, metadata=self._metadata, key=derived(self.hold_id, why),
        )  # fmt: skip
        self.captured += answer.items[0].charged
        self.shortfall += answer.items[0].shortfall
        self.used = 0

    async def release(self) -> None:
        """Returns all units. The hold is settled then."""
        if self._settled:
            return
        if not self.failed_open:
            try:
                await self._quota.api.release_hold(hold_id=self.hold_id, tenant=self.tenant, key=self._change("release"))
            except (errors.HoldNotActive, errors.HoldNotFound):
                pass  # it has expired: the units are back
        self._settled = True

    async def extend(self, ttl: int) -> None:
        """Keeps the hold for `ttl` seconds from now."""
        if not self.failed_open:
            await self._quota.api.extend_hold(hold_id=self.hold_id, tenant=self.tenant, ttl_seconds=ttl, key=self._change("extend"))

    def _change(self, what: str) -> str:
        self._changes += 1
        return derived(self.hold_id, f"{what}-{self._changes}")

    async def __aenter__(self) -> AsyncHold:
        return await self.open()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self._settled:
            await finish(self._close(error is None))

    async def _close(self, tell: bool) -> None:
        """Captures what was used. An error is logged, and raised if it hides no other."""
        try:
            await self.capture()
        except errors.QuotaError as failed:
            log.error("quota: %d units of hold %s of tenant %s were not captured: %s", self.used, self.hold_id, self.tenant, failed)
            if tell:
                raise


def amounts(meter: str | Mapping[str, int], amount: int) -> Mapping[str, int]:
    """Returns amounts by meter."""
    if isinstance(meter, str):
        return {meter: amount}
    if amount != 1:
        raise ValueError("give either a meter and an amount, or amounts by meter")
    return dict(meter)


def listed(items: Mapping[str, int]) -> list[params.Item]:
    """Returns items of a request."""
    return [{"meter": meter, "amount": amount} for meter, amount in items.items()]


def derived(key: str, what: str) -> str:
    """Returns the key of an operation that follows another. A long key is hashed: the service takes 255 characters."""
    longest = 200
    return f"{key if len(key) <= longest else hashlib.sha256(key.encode()).hexdigest()}:{what}"
