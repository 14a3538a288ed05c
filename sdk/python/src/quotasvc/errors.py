"""Errors by the code of the service's problem.

Catch the class for a code, `Denied` for every refusal that concerns the tenant, `Undecided` when the service could not decide, or
`QuotaError` for all. A code that this version does not know is an error of the class for its status.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from quotasvc._decode import Meta, parse_time


@dataclass(frozen=True)
class FieldError:
    """A wrong field of a request."""

    field: str  # a path such as items[0].amount, a header, a query parameter, or body
    message: str


SAY_NOTHING = frozenset({"rate_limited", "queue_full", "unavailable", "outcome_unknown", "invalid_answer"})


class QuotaError(Exception):
    """An operation that was not done, or whose outcome is unknown.

    `code` is stable and meant for programs; `detail` is for people. `key` is the Idempotency-Key of the operation: sending it again with
    the same key never charges twice.
    """

    code = ""
    outcome_unknown = False  # whether an attempt may have taken effect; always False for a read

    def __init__(
        self,
        detail: str = "",
        *,
        code: str = "",
        meta: Meta | None = None,
        problem: Mapping[str, Any] | None = None,
        retry_after: float = 0,
        key: str = "",
    ) -> None:
        super().__init__(detail)
        self.code = code or self.code
        self.detail = detail
        self.meta = meta or Meta()
        self.problem: Mapping[str, Any] = problem or {}
        self.retry_after = retry_after  # seconds that the service asks to wait; 0 = it did not ask
        self.key = key

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code

    @property
    def says_nothing(self) -> bool:
        """Whether the answer says nothing about an earlier attempt, which may have taken effect although its answer was lost."""
        return self.status == 0 or self.code in SAY_NOTHING

    @property
    def status(self) -> int:
        """The HTTP status; 0 without an answer."""
        return self.meta.status

    @property
    def request_id(self) -> str:
        """The id of the request in the service's log."""
        return str(self.problem.get("request_id") or self.meta.request_id)

    @property
    def errors(self) -> list[FieldError]:
        """The wrong fields of the request."""
        return [FieldError(str(e.get("field")), str(e.get("message"))) for e in self.problem.get("errors") or []]

    @property
    def required(self) -> int | None:
        """The units that were asked for."""
        return self.problem.get("required")

    @property
    def available(self) -> int | None:
        """The units that were left."""
        return self.problem.get("available")

    @property
    def meter(self) -> str | None:
        """The meter that has too little."""
        return (self.problem.get("limiting") or {}).get("meter")

    @property
    def reset_at(self) -> datetime | None:
        """The end of the period."""
        return _time(self.problem.get("reset_at"))

    @property
    def would_succeed_at(self) -> datetime | None:
        """When the same request would succeed if nothing else happens; None if no known event helps."""
        return _time(self.problem.get("would_succeed_at"))

    @property
    def violated_policies(self) -> list[str]:
        """The limits that denied."""
        return list(self.problem.get("violated-policies") or [])


def _time(text: Any) -> datetime | None:
    return parse_time(text) if isinstance(text, str) else None


class Denied(QuotaError):
    """The tenant may not do this now. Nothing was charged."""


class Undecided(QuotaError):
    """The service could not decide, or its answer was lost. Retry with the same key."""


class BadRequest(QuotaError):
    """The request can never succeed as it is: a fault of the program or of its configuration."""


class NotFound(QuotaError):
    """Something that the request names does not exist."""


class Conflict(QuotaError):
    """The current state does not allow the request."""


class Forbidden(QuotaError):
    """The key lacks the scope of the request, or is bound to another tenant."""

    code = "forbidden"


class Blocked(Denied):
    """The tenant, the subject or the address is blocked. `problem["blocked"]` says which."""

    code = "forbidden"


class QuotaExceeded(Denied):
    """Less is left than requested; the next period grants more."""

    code = "quota_exceeded"


class CreditsExhausted(Denied):
    """Less is left than requested, and no period will grant more."""

    code = "credits_exhausted"


class RateLimited(Denied):
    """A rate limit denied the request."""

    code = "rate_limited"


class TenantSuspended(Denied):
    """The tenant is suspended."""

    code = "tenant_suspended"


class MeterNotInPlan(Denied):
    """The tenant's plan does not have the meter."""

    code = "meter_not_in_plan"


class FeatureNotInPlan(Denied):
    """The tenant's plan does not have the feature."""

    code = "feature_not_in_plan"


class GaugeLimit(Denied):
    """The value of a gauge would pass the plan's amount."""

    code = "gauge_limit"


class CostExceedsCapacity(Denied):
    """The request costs more than the capacity of a rate limit. Waiting does not help."""

    code = "cost_exceeds_capacity"


class TenantNotFound(NotFound):
    """There is no such tenant."""

    code = "tenant_not_found"


class GrantNotFound(NotFound):
    """The tenant has no such grant."""

    code = "grant_not_found"


class HoldNotFound(NotFound):
    """The tenant has no such hold."""

    code = "hold_not_found"


class OperationNotFound(NotFound):
    """The tenant has no such operation."""

    code = "operation_not_found"


class ChargeNotFound(NotFound):
    """The service has not issued this charge_id."""

    code = "charge_not_found"


class LeaseNotFound(NotFound):
    """The lease does not exist, or has ended."""

    code = "lease_not_found"


class Archived(NotFound):
    """What was asked for was taken out of the database. `problem["oldest"]` is the oldest instant that can be asked for."""

    code = "archived"


class HoldNotActive(Conflict):
    """The hold was captured or released, or has expired."""

    code = "hold_not_active"


class PreconditionFailed(Conflict):
    """The state has changed, or does not allow the request."""

    code = "precondition_failed"


class ChangePending(Conflict):
    """Another change of the tenant's terms waits."""

    code = "change_pending"


class TooMany(Conflict):
    """The keys of the tenant have created as many as they may."""

    code = "too_many"


class TooManyGrants(Conflict):
    """The balance has 1,000 open grants."""

    code = "too_many_grants"


class InvalidArgument(BadRequest):
    """The request violates the contract. `errors` lists the wrong fields."""

    code = "invalid_argument"


class IdempotencyKeyMissing(BadRequest):
    """The request needs an Idempotency-Key."""

    code = "idempotency_key_missing"


class IdempotencyKeyReused(BadRequest):
    """The key was used for another request."""

    code = "idempotency_key_reused"


class RefundExceedsDebit(BadRequest):
    """The amount exceeds what can still be refunded of the operation."""

    code = "refund_exceeds_debit"


class AmountOutOfRange(BadRequest):
    """A sum of the balance would pass its bound."""

    code = "amount_out_of_range"


class TooManyLimits(BadRequest):
    """More than 16 rate limits apply to the request."""

    code = "too_many_limits"


class MethodNotAllowed(BadRequest):
    """The resource does not support this method."""

    code = "method_not_allowed"


class Unauthenticated(QuotaError):
    """The key is missing, unknown, expired or revoked."""

    code = "unauthenticated"


class QueueFull(Undecided):
    """Too many requests are waiting. Nothing was done."""

    code = "queue_full"


class Unavailable(Undecided):
    """A server that the service depends on is away. Nothing was done."""

    code = "unavailable"


class ReportTooSlow(Undecided):
    """A report took too long. Ask for a shorter time, or for one meter or subject."""

    code = "report_too_slow"


class OutcomeUnknown(Undecided):
    """The operation may have taken effect."""

    code = "outcome_unknown"
    outcome_unknown = True


class InternalError(Undecided):
    """An error in the service."""

    code = "internal"
    outcome_unknown = True


class NoAnswer(Undecided):
    """The service did not answer, or not in time. The operation may have taken effect; `__cause__` has the reason."""

    code = "no_answer"
    outcome_unknown = True  # False if no connection was made


class InvalidAnswer(Undecided):
    """The answer is not from the service, but from a proxy, or is damaged. The operation may have taken effect."""

    code = "invalid_answer"
    outcome_unknown = True


BY_CODE: dict[str, type[QuotaError]] = {
    "not_found": NotFound,
    **{
        cls.code: cls
        for cls in [
            AmountOutOfRange, Archived, ChangePending, ChargeNotFound, CostExceedsCapacity, CreditsExhausted,
            FeatureNotInPlan, Forbidden, GaugeLimit, GrantNotFound, HoldNotActive, HoldNotFound, IdempotencyKeyMissing,
            IdempotencyKeyReused, InternalError, InvalidArgument, LeaseNotFound, MeterNotInPlan, MethodNotAllowed,
            OperationNotFound, OutcomeUnknown, PreconditionFailed, QueueFull, QuotaExceeded, RateLimited,
            RefundExceedsDebit, ReportTooSlow, TenantNotFound, TenantSuspended, TooMany, TooManyGrants, TooManyLimits,
            Unauthenticated, Unavailable,
        ]
    },
}  # fmt: skip

# For codes that a later version of the service may have.
_BY_STATUS: dict[int, type[QuotaError]] = {
    400: BadRequest, 401: Unauthenticated, 402: Denied, 403: Denied, 404: NotFound, 409: Conflict, 410: NotFound, 422: BadRequest,
    429: Denied,
}  # fmt: skip


def from_answer(raw: bytes, meta: Meta, retry_after: float, key: str) -> QuotaError:
    """Returns the error for a refusal."""
    try:
        problem = json.loads(raw)
    except ValueError:
        problem = None
    code = problem.get("code") if isinstance(problem, dict) else None
    if not isinstance(code, str) or not code:
        detail = f"status {meta.status} without a problem: this is not an answer of quotasvc"
        return InvalidAnswer(detail, meta=meta, retry_after=retry_after, key=key)
    cls = BY_CODE[code] if code in BY_CODE else _BY_STATUS.get(meta.status, Undecided)
    if code == "forbidden" and problem.get("blocked"):
        cls = Blocked
    detail = str(problem.get("detail") or problem.get("title") or "")
    return cls(detail, code=code, meta=meta, problem=problem, retry_after=retry_after, key=key)
