"""What happens to a request when the service cannot decide it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from quotasvc import models
from quotasvc._decode import Meta
from quotasvc.errors import Undecided

log = logging.getLogger("quotasvc")


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
