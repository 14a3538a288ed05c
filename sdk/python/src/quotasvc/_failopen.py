"""What happens to a request when the service cannot decide it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone

from quotasvc import models
from quotasvc._decode import Meta
from quotasvc.errors import NoAnswer, QuotaError, Undecided

log = logging.getLogger("quotasvc")

# After so many requests in a row without a decision, requests that may pass undecided do so at once, except one each PROBE_EVERY seconds. So an outage
# does not delay each request of a program by its deadline.
UNDECIDED_MAX = 5
PROBE_EVERY = 1.0


@dataclass(frozen=True)
class FailOpenEvent:
    """A request that passed although the service did not decide it. Nothing was charged, as far as is known.

    To charge it later, send the same debit with the same `key`: if the service did receive the first one, nothing is charged twice.
    """

    operation: str  # check, consume, debit or hold
    tenant: str
    items: Mapping[str, int]  # amounts by meter
    subject: str | None
    key: str  # the Idempotency-Key; empty for a check
    error: Undecided


class FailOpen:
    """The meters whose requests pass while the service cannot decide."""

    def __init__(self, meters: Collection[str], hook: Callable[[FailOpenEvent], None] | None) -> None:
        if isinstance(meters, str):
            raise ValueError("fail_open must be a collection of meters, such as {'api_calls'}")
        self.meters = frozenset(meters)
        self.hook = hook
        self._lock = threading.Lock()
        self._undecided = 0  # in a row
        self._probe_at = 0.0

    @contextmanager
    def asking(self, items: Mapping[str, int], key: str = "") -> Iterator[None]:
        """Surrounds a request, and notes whether it is decided. It raises NoAnswer at once if the request may pass and the service is away."""
        if self.meters.issuperset(items) and self._away():
            raise NoAnswer("the service did not decide the last requests", key=key)
        try:
            yield
        except Undecided:
            self._note(False)
            raise
        except QuotaError:
            self._note(True)  # a refusal is a decision
            raise
        self._note(True)

    def _away(self) -> bool:
        """Reports whether the service need not be asked."""
        with self._lock:
            if self._undecided < UNDECIDED_MAX:
                return False
            now = time.monotonic()
            if now < self._probe_at:
                return True
            self._probe_at = now + PROBE_EVERY
            return False

    def _note(self, decided: bool) -> None:
        with self._lock:
            self._undecided = 0 if decided else self._undecided + 1
            if self._undecided == UNDECIDED_MAX:
                self._probe_at = time.monotonic() + PROBE_EVERY

    def lets_pass(self, event: FailOpenEvent) -> bool:
        """Reports whether all meters of a request fail open, and calls the hook then."""
        if not self.meters.issuperset(event.items):
            return False
        log.warning("quota: %s of tenant %s passes undecided: %s", event.operation, event.tenant, event.error)
        if self.hook:
            try:
                self.hook(event)
            except Exception:
                log.exception("the hook on_fail_open failed")
        return True


def opened_meta(error: Undecided) -> Meta:
    """Returns the meta of an answer that no service gave."""
    return Meta(attempts=max(error.meta.attempts, 1), failed_open=True)


def opened_debit(event: FailOpenEvent) -> models.DebitAnswer:
    """Returns the answer to a debit that passed undecided."""
    items = [
        models.DebitedItem(meter=meter, requested=amount, charged=0, shortfall=0, draws=[], remaining=0)
        for meter, amount in event.items.items()
    ]
    answer = models.DebitAnswer(operation_id=event.key, tenant=event.tenant, items=items, as_of=datetime.now(timezone.utc))
    object.__setattr__(answer, "meta", opened_meta(event.error))
    return answer


def opened_check(event: FailOpenEvent) -> models.CheckAnswer:
    """Returns the answer to a check that passed undecided."""
    answer = models.CheckAnswer(allowed=True, items=[], limits=[], source="local", as_of=datetime.now(timezone.utc), degraded=True)
    object.__setattr__(answer, "meta", opened_meta(event.error))
    return answer
