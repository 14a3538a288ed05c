"""Local units: many decisions per request. See docs/recipes/local-units.md for the recipe and its error bound.

Two threads share the holds with the takers: the filler takes holds ahead, the settler captures, extends, returns and debits. The lock is not
kept during a request. Invariants: each taken unit is charged once while the process lives and the balance covers it; at most four holds; no
unit is granted that is not held, except unbacked_max of them while the service is away.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from quotasvc import errors
from quotasvc._backoff import Backoff
from quotasvc._call import Call, new_key
from quotasvc._client import Quota
from quotasvc._decode import parse_time
from quotasvc._localhold import Action, LocalHold, Operation, Sizing

log = logging.getLogger("quotasvc")

Reason = Literal["exhausted", "refilling", "away", "closed"]

_MAX_AMOUNT = 2**53 - 1
_MAX_HOLDS = 4  # two are in use at a steady rate; the others bridge slow captures
_AWAY_AFTER = 1.0  # seconds without an answer after which the service counts as away
_DENIED_PAUSE = 1.0  # seconds for which a denial of the service answers for it: a top-up is noticed after that

_TEXT: dict[Reason, str] = {
    "exhausted": "the service holds no more units for this balance",
    "refilling": "units are on their way",
    "away": "the service does not answer",
    "closed": "the local units are closed",
}


class LocalDenied(errors.Denied):
    """A take that got nothing.

    reason: exhausted - the service refused to hold units, and code, problem and retry_after are from its answer. refilling - too few units
    are held, and more are on their way. away - too few are held, and the service does not answer. closed - close was called.
    """

    code = "local_units"

    def __init__(self, reason: Reason, cause: errors.QuotaError | None = None) -> None:
        detail = _TEXT[reason] + (f": {cause.detail}" if cause else "")
        super().__init__(detail)
        if cause:
            self.code, self.meta, self.problem, self.retry_after = cause.code, cause.meta, cause.problem, cause.retry_after
        self.reason: Reason = reason


@dataclass(frozen=True)
class LocalStats:
    """Sums since the start, in units except for requests. After a clean close, taken = captured + debited + shortfall."""

    taken: int = 0
    captured: int = 0  # charged by captures of holds
    debited: int = 0  # charged by debits, because their hold had ended or they were granted without one
    shortfall: int = 0  # granted, and not covered by the balance when they were debited
    uncharged: int = 0  # granted and not charged yet: what a crash would lose now
    held: int = 0  # held and not taken
    requests: int = 0


@dataclass
class _Reply:
    """An answer of the service to an operation."""

    body: dict[str, Any]
    end: float = 0.0  # the hold lives at least until then
    reset: float = 0.0  # the period ends about then; 0 = unknown
    error: errors.QuotaError | None = None

    @property
    def item(self) -> dict[str, Any]:
        items = self.body.get("items") or [{}]
        return dict(items[0])

    @property
    def exhausted(self) -> bool:
        return self.error is not None and self.error.code in ("quota_exceeded", "credits_exhausted")

    @property
    def ended(self) -> bool:
        return self.error is not None and self.error.code in ("hold_not_active", "hold_not_found")


def _final(error: errors.QuotaError) -> bool:
    """Reports whether a refusal is the service's own answer about the operation. One without a code comes from a proxy, 429 without units to
    blame asks to wait, and after a 5xx the outcome is unknown."""
    if error.code in ("quota_exceeded", "credits_exhausted"):
        return True
    return not isinstance(error, errors.InvalidAnswer) and 400 <= error.status < 500 and error.status != 429


class LocalUnits:
    """Spends units of one balance in this process, without a request for each decision. Use one for each balance in each process.

    take() never blocks, so it may be called in a coroutine. Close it at the end of the program, or use it in a `with` block.
    """

    def __init__(
        self,
        quota: Quota,
        tenant: str,
        meter: str,
        *,
        subject: str | None = None,
        min: int | None = None,
        max: int | None = None,
        ttl: int = 60,
        capture_every: float = 1.0,
        unbacked_max: int = 0,
        backoff: Backoff | None = None,
        on_error: Callable[[errors.QuotaError], None] | None = None,
    ) -> None:
        """Makes local units. No request is sent before the first take.

        min, max: units of one hold, 100 and 10,000 by default; its size follows the use of a second. max bounds a take.
        ttl: seconds that the service keeps a hold: how long it can be spent in an outage, and how long a killed process keeps it from others.
        capture_every: seconds for which use may stay uncaptured: what a killed process loses.
        unbacked_max: units that are granted without a hold while the service is away. They are debited when it is back.
        on_error: called with every failed attempt and every refusal of the service. It must return soon.
        """
        low = min if min is not None else (100 if max is None or max > 100 else max)
        high = max if max is not None else (10_000 if low < 10_000 else low)
        for ok, demand in (
            (bool(tenant), "tenant is required"),
            (bool(meter), "meter is required"),
            (1 <= high <= _MAX_AMOUNT, "max must be from 1 to 2^53 - 1"),
            (1 <= low <= high, "min must be from 1 to max"),
            (isinstance(ttl, int) and 1 <= ttl <= 86_400, "ttl must be whole seconds from 1 to 86400"),
            (capture_every > 0, "capture_every must be above 0"),
            (0 <= unbacked_max <= _MAX_AMOUNT, "unbacked_max must be from 0 to 2^53 - 1"),
        ):
            if not ok:
                raise ValueError(demand)
        self._quota = quota.with_options(attempts=1)  # it has its own retries, which last until there is an answer
        self.tenant, self.meter, self.subject = tenant, meter, subject
        self.max, self._ttl, self._capture_every, self._unbacked_max = high, ttl, capture_every, unbacked_max
        self._backoff = backoff or Backoff(cap=2.0)  # so that it notices soon that the service is back
        self._on_error = on_error
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # told after every answer that take_wait waits for
        self._wake_filler, self._wake_settler = threading.Event(), threading.Event()
        self._closing, self._give_up, self._filled, self._settled = (threading.Event() for _ in range(4))
        self._threads: list[threading.Thread] = []
        self._holds: list[LocalHold] = []  # all that are not settled, oldest first
        self._filling = False  # a hold is being asked for
        self._asked_at = 0.0  # since when the request for it is unanswered; 0 = it is not sent
        self._away = False  # and the service does not answer
        self._denial: errors.QuotaError | None = None
        self._denied_until = 0.0
        self._sizing = Sizing(low, high)
        self._late = 0  # taken units that no hold pays; they are to be debited
        self._debit: Operation | None = None
        self._debits = 0
        self._id = f"local-{new_key()}"
        self._taken = self._captured = self._debited = self._shortfall = self._requests = 0

    def take(self, n: int = 1) -> None:
        """Takes n units, 1 to max, without a request. If this process holds too few, it takes none and raises LocalDenied."""
        self._bounded(n)
        with self._lock:
            self._take(n)

    def take_wait(self, n: int = 1, timeout: float = 5.0) -> None:
        """Is take that waits up to `timeout` seconds for units on their way. It raises LocalDenied as soon as the service refuses."""
        self._bounded(n)
        end = time.monotonic() + timeout
        with self._changed:
            while True:
                try:
                    return self._take(n)
                except LocalDenied:
                    left = end - time.monotonic()
                    if not self._filling or left <= 0:
                        raise
                    self._changed.wait(min(left, _AWAY_AFTER / 2))  # also to notice that the service is away

    async def take_wait_async(self, n: int = 1, timeout: float = 5.0) -> None:
        """Is take_wait for coroutines. It uses a thread only if there is something to wait for."""
        try:
            return self.take(n)
        except LocalDenied as denied:
            if denied.reason == "closed":
                raise
        await asyncio.to_thread(self.take_wait, n, timeout)

    def _bounded(self, n: int) -> None:
        if not 1 <= n <= self.max:
            raise ValueError(f"n must be from 1 to {self.max} (max)")

    def _take(self, n: int) -> None:
        if self._closing.is_set():
            raise LocalDenied("closed")
        now = time.monotonic()
        free = sum(h.free(now) for h in self._holds)
        if free < n:
            return self._short(n, n - free, now)
        lasting = sum(h.free(now) for h in self._holds if now < h.old)
        self._taken += n
        if lasting - n < self._sizing.low():
            self._ask_for_units(now)
        for hold in self._holds:
            part = min(n, hold.free(now))
            if part and hold.take(part, now):
                self._wake_settler.set()
            n -= part
            if not n:
                return None
        return None

    def _short(self, n: int, missing: int, now: float) -> None:
        """Answers a take of n units of which so many are missing."""
        self._sizing.missing = max(self._sizing.missing, missing)
        self._ask_for_units(now)
        if self._asked_at and now - self._asked_at > _AWAY_AFTER:
            self._away = True
        if self._denial is not None:
            raise LocalDenied("exhausted", self._denial)
        if not self._away:
            raise LocalDenied("refilling")
        if n > self._unbacked_max - self._late:
            raise LocalDenied("away")
        self._late += n
        self._taken += n
        self._wake_settler.set()

    def _ask_for_units(self, now: float) -> None:
        """Wakes the filler, unless it is at work or the service has just refused. The first call starts the threads."""
        if self._filling or now < self._denied_until:
            return
        if not self._threads:
            for work in (self._fill, self._settle):
                thread = threading.Thread(target=work, name=f"quotasvc-local-{self.meter}", daemon=True)
                self._threads.append(thread)
                thread.start()
            atexit.register(self._close_at_exit)
        self._filling = True
        self._asked_at = now
        self._wake_filler.set()

    def stats(self) -> LocalStats:
        """Returns the sums so far."""
        with self._lock:
            now = time.monotonic()
            return LocalStats(
                taken=self._taken, captured=self._captured, debited=self._debited, shortfall=self._shortfall, requests=self._requests,
                uncharged=self._late + sum(h.taken - h.captured for h in self._holds), held=sum(h.free(now) for h in self._holds),
            )  # fmt: skip

    def close(self, timeout: float = 10.0) -> None:
        """Refuses further takes, captures what was used, returns the rest and ends the threads.

        It raises NoAnswer if that is not done within `timeout` seconds. The service then returns the units when the holds expire.
        """
        with self._changed:
            self._closing.set()
            for op in [h.op for h in self._holds] + [self._debit]:
                if op is not None:
                    op.retry = 0.0  # once more at once
            self._changed.notify_all()
        self._wake_filler.set()
        self._wake_settler.set()
        if self._threads and not self._settled.wait(timeout):
            self._give_up.set()
            self._wake_settler.set()
            self._settled.wait(self._quota._transport.retry.timeout + 1)  # the request under way ends by then
        atexit.unregister(self._close_at_exit)
        stats = self.stats()
        if stats.uncharged or self._holds:
            raise errors.NoAnswer(f"{stats.uncharged} used units were not charged in time, and {len(self._holds)} holds are left to expire")

    def _close_at_exit(self) -> None:
        """Closes what the program has left open."""
        try:
            self.close()
        except errors.QuotaError as error:
            log.error("quota: local units of %s of tenant %s: %s", self.meter, self.tenant, error)

    def __enter__(self) -> LocalUnits:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # The filler.

    def _fill(self) -> None:
        try:
            while not self._closing.is_set():
                self._wake_filler.wait()
                self._wake_filler.clear()
                self._refill()
        finally:
            self._filled.set()
            self._wake_settler.set()

    def _refill(self) -> None:
        """Takes one hold, if one was asked for. It tries until the service answers or the local units are closed."""
        units = self._next_size()
        while units:
            hold = LocalHold(f"local-{new_key()}", units)
            body = {
                "tenant": self.tenant, "hold_id": hold.id, "items": [{"meter": self.meter, "amount": units}], "subject": self.subject,
                "ttl_seconds": self._ttl,
            }  # fmt: skip
            op = Operation("/v1/holds", hold.id, body)
            reply = self._until_answered(op)
            if reply is None:  # closed
                self._abandon(hold, op)
                return
            units = self._answered(hold, reply)

    def _next_size(self) -> int:
        """Waits until a further hold is allowed and returns its size, 0 for none."""
        while True:
            with self._lock:
                if not self._filling or self._closing.is_set():
                    return 0
                if len(self._holds) < _MAX_HOLDS:
                    return self._sizing.next(self._taken, time.monotonic())
            self._wake_filler.wait()  # until a hold is settled
            self._wake_filler.clear()

    def _until_answered(self, op: Operation) -> _Reply | None:
        with self._lock:
            self._asked_at = time.monotonic()
        while True:
            reply = self._send(op)
            if reply is not None:
                return reply
            with self._changed:
                self._away = True
                self._changed.notify_all()
            if self._closing.wait(op.wait):
                return None

    def _answered(self, hold: LocalHold, reply: _Reply) -> int:
        """Notes the answer about a hold. It returns the size of the hold to ask for next, 0 for none."""
        with self._changed:
            self._away, self._asked_at = False, 0.0
            if reply.error is not None:
                units = self._sizing.smaller(reply.error.available or 0) if reply.exhausted else 0
                if not units:
                    self._denial, self._denied_until = reply.error, time.monotonic() + _DENIED_PAUSE
                    self._sizing.missing = 0
                    self._sizing.remaining = (reply.error.available or 0) if reply.exhausted else None
                    self._filling = False
                    self._changed.notify_all()
                return units
            hold.lasts(reply.end, self._ttl)
            hold.reset = reply.reset
            self._holds.append(hold)
            self._sizing.missing, self._sizing.remaining = 0, reply.item.get("remaining", 0)
            self._denial, self._filling = None, False
            self._changed.notify_all()
            self._wake_settler.set()
            return 0

    def _abandon(self, hold: LocalHold, op: Operation) -> None:
        """Leaves a hold to the settler whose request was not answered before the close: the service may have made it."""
        with self._changed:
            self._filling = False
            if op.tries:
                hold.size, hold.ending = 0, True
                self._holds.append(hold)
            self._changed.notify_all()

    # The settler.

    def _settle(self) -> None:
        try:
            while not self._give_up.is_set():
                hold, op, due = self._next_operation()
                if op is not None:
                    reply = self._send(op)
                    if reply is not None:
                        self._done(hold, op, reply)
                    continue
                with self._lock:
                    if self._filled.is_set() and not self._holds and not self._late:
                        return
                self._wake_settler.wait(due)
                self._wake_settler.clear()
        finally:
            self._filled.wait()
            self._settled.set()

    def _next_operation(self) -> tuple[LocalHold | None, Operation | None, float]:
        """Returns the operation to send now, and its hold, None for a debit. Without one it returns how long to wait."""
        with self._lock:
            now, due = time.monotonic(), float(self._ttl)
            for hold in self._holds:
                if hold.op is None or hold.op.do == "extend" and now >= hold.stop:
                    do, at = hold.next(now, self._ttl, self._capture_every, self._closing.is_set())
                    if do is None:
                        due = min(due, at - now)
                        continue
                    hold.op = self._change(hold, do)
                if hold.op.retry <= now:
                    return hold, hold.op, 0.0
                due = min(due, hold.op.retry - now)
            if self._debit is None and self._late:
                self._debit = self._new_debit()
            if self._debit is not None:
                if self._debit.retry <= now:
                    return None, self._debit, 0.0
                due = min(due, self._debit.retry - now)
            return None, None, max(due, 0.0)

    def _change(self, hold: LocalHold, do: Action) -> Operation:
        """Returns the operation that does something with a hold. Its key is the hold's id and the number of the change."""
        hold.changes += 1
        key = f"{hold.id}-{hold.changes}"
        if do == "extend":
            hold.touched = False
            return Operation(f"/v1/holds/{hold.id}/extend", key, {"tenant": self.tenant, "ttl_seconds": self._ttl}, do)
        if do == "release":
            hold.ending = True
            return Operation(f"/v1/holds/{hold.id}/release", key, {"tenant": self.tenant}, do)
        hold.asked = hold.taken
        hold.ending = hold.ending or do == "finish"
        units = hold.taken - hold.captured
        body = {"tenant": self.tenant, "items": [{"meter": self.meter, "amount": units}], "final": True if do == "finish" else None}
        return Operation(f"/v1/holds/{hold.id}/capture", key, body, do, units)

    def _new_debit(self) -> Operation:
        """Returns the debit of all late units. It never takes more than the balance has."""
        self._debits += 1
        items = [{"meter": self.meter, "amount": self._late}]
        body = {"tenant": self.tenant, "items": items, "subject": self.subject, "mode": "best_effort"}
        return Operation("/v1/debits", f"{self._id}-{self._debits}", body, amount=self._late)

    def _done(self, hold: LocalHold | None, op: Operation, reply: _Reply) -> None:
        """Notes the answer to an operation on a hold, or to a debit."""
        if reply.error is not None and (hold is None or not reply.ended and not reply.exhausted):
            # Only an operator can mend it: a revoked key, a suspended tenant. It is tried again, as rarely as the back-off allows.
            self._postpone(op, reply.error.retry_after)
            return
        with self._lock:
            if hold is None:
                self._late -= op.amount
                self._debit = None
                self._debited += reply.item.get("charged", 0)
                self._shortfall += reply.item.get("shortfall", 0)
            elif reply.error is not None:  # it ended before all was captured that was taken from it
                self._late += hold.taken - hold.captured
                self._remove(hold)
            elif op.do == "extend":
                hold.op = None
                hold.lasts(reply.end, self._ttl)
            else:
                hold.op = None
                hold.captured += op.amount
                self._captured += op.amount
                if op.do != "capture":
                    self._remove(hold)

    def _remove(self, hold: LocalHold) -> None:
        self._holds = [h for h in self._holds if h is not hold]
        self._wake_filler.set()  # it may have waited for that

    # Requests.

    def _send(self, op: Operation) -> _Reply | None:
        """Makes one attempt. None means that the outcome is unknown or a later attempt may succeed: op.wait says how long to wait."""
        began = time.monotonic()
        with self._lock:
            op.first = op.first if op.tries else began
            op.tries += 1
            self._requests += 1
        try:
            raw, meta = self._quota._transport.send(Call("POST", op.path, body=op.body, key=op.key))
            body = json.loads(raw)
        except errors.QuotaError as error:
            self._tell(error)
            if _final(error):
                return _Reply({}, error=error)
            self._postpone(op, error.retry_after)
            return None
        except Exception as error:  # an answer that is no JSON; anything else must not end the thread either
            self._tell(errors.InvalidAnswer(f"{op.path}: {error}", key=op.key))
            self._postpone(op, 0)
            return None
        if meta.replayed:
            began = op.first  # the hold was made at the first attempt or later
        reply = _Reply(body)
        if "expires_at" in body:  # the two clocks are never compared: only the service's duration counts
            reply.end = began + (parse_time(body["expires_at"]) - parse_time(body["as_of"])).total_seconds()
        reset = meta.headers.get("X-Quota-Reset", "")
        if reset.isdigit():
            reply.reset = began + int(reset)
        return reply

    def _postpone(self, op: Operation, after: float) -> None:
        wait = self._backoff.wait(op.tries, after)
        with self._lock:
            op.wait, op.retry = wait, time.monotonic() + wait

    def _tell(self, error: errors.QuotaError) -> None:
        if self._on_error:
            try:
                self._on_error(error)
            except Exception:
                log.exception("the hook on_error failed")
