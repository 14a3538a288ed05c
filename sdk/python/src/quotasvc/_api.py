# Generated from _api_async.py by scripts/generate.py. Do not edit.
"""One method for each operation of the contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from quotasvc import models, params
from quotasvc._call import Call, new_key
from quotasvc._transport import Transport


class Api:
    """Every operation of the contract, with its fields as keyword arguments. None means that a field is left out."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def check(
        self,
        *,
        tenant: str,
        items: Sequence[params.Item] | None = None,
        feature: str | None = None,
        subject: str | None = None,
        route: str | None = None,
        ip: str | None = None,
        method: str | None = None,
        max_stale_ms: int | None = None,
    ) -> models.CheckAnswer:
        """Check whether a consume would be allowed.

        Checks limits and balances without a change. The status is 200 even if `allowed` is false. Then `code` is the code of the
        refusal that a consume would get.

        Scope: use.
        """
        return self._transport.call(
            Call("POST", "/v1/check", body={"tenant": tenant, "items": items, "feature": feature, "subject": subject, "route": route, "ip": ip, "method": method, "max_stale_ms": max_stale_ms}),
            models.CheckAnswer,
        )

    def check_batch(
        self,
        *,
        checks: Sequence[params.CheckRequest],
    ) -> models.CheckBatchAnswer:
        """Up to 1000 independent checks.

        Each result is the answer that POST /v1/check would return, or its problem, in the order of the checks. The limits of all
        checks are read together. A body with an invalid field, or with more than 1048576 bytes, is refused as a whole.

        Scope: use.
        """
        return self._transport.call(
            Call("POST", "/v1/check/batch", body={"checks": checks}),
            models.CheckBatchAnswer,
        )

    def consume(
        self,
        *,
        tenant: str,
        items: Sequence[params.Item] | None = None,
        feature: str | None = None,
        subject: str | None = None,
        route: str | None = None,
        ip: str | None = None,
        method: str | None = None,
        mode: params.Mode | None = None,
        metadata: Mapping[str, Any] | None = None,
        dry_run: bool | None = None,
        key: str | None = None,
    ) -> models.DebitAnswer:
        """Charge the rate limits and debit the balance, or neither.

        If one limit or one item does not permit the request, nothing is charged.

        Scope: use. key: the Idempotency-Key; a new one if it is not given.
        """
        return self._transport.call(
            Call("POST", "/v1/consume", body={"tenant": tenant, "items": items, "feature": feature, "subject": subject, "route": route, "ip": ip, "method": method, "mode": mode, "metadata": metadata, "dry_run": dry_run}, key=key or new_key()),
            models.DebitAnswer,
        )

    def debit(
        self,
        *,
        tenant: str,
        items: Sequence[params.Item],
        subject: str | None = None,
        mode: params.Mode | None = None,
        metadata: Mapping[str, Any] | None = None,
        dry_run: bool | None = None,
        at: datetime | str | None = None,
        key: str | None = None,
    ) -> models.DebitAnswer:
        """Debit the balance.

        All items succeed or all fail. Rate limits are not charged.

        Scope: use. key: the Idempotency-Key; a new one if it is not given.
        """
        return self._transport.call(
            Call("POST", "/v1/debits", body={"tenant": tenant, "items": items, "subject": subject, "mode": mode, "metadata": metadata, "dry_run": dry_run, "at": at}, key=key or new_key()),
            models.DebitAnswer,
        )

    def debit_batch(
        self,
        *,
        debits: Sequence[params.BatchDebit],
        dry_run: bool | None = None,
    ) -> models.DebitBatchAnswer:
        """Up to 1000 independent debits.

        Each debit succeeds or fails independently, with its own idempotency key. Results are in the order of the debits. A body
        with an invalid field is refused as a whole, before any debit is carried out. Only an object beyond the bounds of metadata
        refuses its own debit alone, with 400 in its result. With `dry_run`, each debit is decided as if there were no other
        debit.

        Scope: use.
        """
        return self._transport.call(
            Call("POST", "/v1/debits/batch", body={"debits": debits, "dry_run": dry_run}),
            models.DebitBatchAnswer,
        )

    def hold(
        self,
        *,
        tenant: str,
        hold_id: str,
        items: Sequence[params.Item],
        subject: str | None = None,
        ttl_seconds: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        dry_run: bool | None = None,
        key: str | None = None,
    ) -> models.HoldAnswer:
        """Reserve units for work that is about to start.

        Held units leave `remaining` at once. A capture uses them. A release or the expiry of the hold returns them to their
        grants. All items are held, or none. Overage cannot be held.

        Scope: use. key: the Idempotency-Key; a new one if it is not given.
        """
        return self._transport.call(
            Call("POST", "/v1/holds", body={"tenant": tenant, "hold_id": hold_id, "items": items, "subject": subject, "ttl_seconds": ttl_seconds, "metadata": metadata, "dry_run": dry_run}, key=key or new_key()),
            models.HoldAnswer,
        )

    def capture_hold(
        self,
        *,
        hold_id: str,
        tenant: str,
        items: Sequence[params.Item] | None = None,
        final: bool | None = None,
        on_expired: params.OnExpired | None = None,
        dry_run: bool | None = None,
        key: str | None = None,
    ) -> models.HoldAnswer:
        """Use held units.

        Without `items`, the capture uses all held units. With `items`, it uses these amounts, and the rest stays held unless
        `final` is true. If the amounts exceed the hold, the capture is decided like a debit. A hold without remaining units is
        `captured`.

        Scope: use. key: the Idempotency-Key; a new one if it is not given.
        """
        return self._transport.call(
            Call("POST", "/v1/holds/{hold_id}/capture", path={"hold_id": hold_id}, body={"tenant": tenant, "items": items, "final": final, "on_expired": on_expired, "dry_run": dry_run}, key=key or new_key()),
            models.HoldAnswer,
        )

    def release_hold(
        self,
        *,
        hold_id: str,
        tenant: str,
        on_expired: params.OnExpired | None = None,
        dry_run: bool | None = None,
        key: str | None = None,
    ) -> models.HoldAnswer:
        """Return held units.

        The units that are still reserved return to the grants from which they came. For a hold that is captured, released or
        expired the answer is 409.

        Scope: use. key: the Idempotency-Key; a new one if it is not given.
        """
        return self._transport.call(
            Call("POST", "/v1/holds/{hold_id}/release", path={"hold_id": hold_id}, body={"tenant": tenant, "on_expired": on_expired, "dry_run": dry_run}, key=key or new_key()),
            models.HoldAnswer,
        )

    def extend_hold(
        self,
        *,
        hold_id: str,
        tenant: str,
        ttl_seconds: int,
        dry_run: bool | None = None,
        key: str | None = None,
    ) -> models.HoldAnswer:
        """Extend a hold.

        The hold expires `ttl_seconds` from now. An extension never shortens a hold.

        Scope: use. key: the Idempotency-Key; a new one if it is not given.
        """
        return self._transport.call(
            Call("POST", "/v1/holds/{hold_id}/extend", path={"hold_id": hold_id}, body={"tenant": tenant, "ttl_seconds": ttl_seconds, "dry_run": dry_run}, key=key or new_key()),
            models.HoldAnswer,
        )

    def refund(
        self,
        *,
        tenant: str,
        operation_id: str,
        at: datetime | str | None = None,
        amount: int | None = None,
        meter: str | None = None,
        on_expired: params.OnExpired | None = None,
        reason: str | None = None,
        dry_run: bool | None = None,
        key: str | None = None,
    ) -> models.RefundAnswer:
        """Refund a debit or a capture, in whole or in part.

        Repeated refunds cannot exceed the debit. Units return to their grants. Units that were drawn last return first.

        Scope: use. key: the Idempotency-Key; a new one if it is not given.
        """
        return self._transport.call(
            Call("POST", "/v1/refunds", body={"tenant": tenant, "operation_id": operation_id, "at": at, "amount": amount, "meter": meter, "on_expired": on_expired, "reason": reason, "dry_run": dry_run}, key=key or new_key()),
            models.RefundAnswer,
        )

    def charge_limits(
        self,
        *,
        tenant: str,
        subject: str | None = None,
        route: str | None = None,
        ip: str | None = None,
        method: str | None = None,
        cost: int | None = None,
        after_the_fact: bool | None = None,
        rules: Sequence[str] | None = None,
        dry_run: bool | None = None,
        key: str | None = None,
    ) -> models.ChargeAnswer:
        """Charge limits without a debit.

        Charges all limits that apply, or none, without an entry in the ledger. `cost` multiplies the tokens that each limit takes
        for a request. `rules` names the limits to charge. If another limit replaces a named limit, that other limit is charged
        instead. A named limit that does not apply is not charged. A limit with `match.meter` never applies here. With
        `after_the_fact` nothing is denied, and the limits are charged down to their `debt` below zero. If an `Idempotency-Key` is
        repeated within 10 minutes, nothing is charged, and the answer shows the present state of the limits. While Redis is down,
        only the instance that has charged knows the key.

        Scope: use. key: the Idempotency-Key; a new one if it is not given.
        """
        return self._transport.call(
            Call("POST", "/v1/limits/charge", body={"tenant": tenant, "subject": subject, "route": route, "ip": ip, "method": method, "cost": cost, "after_the_fact": after_the_fact, "rules": rules, "dry_run": dry_run}, key=key or new_key()),
            models.ChargeAnswer,
        )

    def refund_charge(
        self,
        *,
        charge_id: str,
    ) -> models.ChargeRefundAnswer:
        """Give back the tokens of a charge.

        Returns the tokens that the charge took, except for tokens that have come back with time. A second refund of a charge
        returns nothing. For an id that was not issued the answer is 404. After 503, the refund may have been made.

        Scope: use.
        """
        return self._transport.call(
            Call("POST", "/v1/limits/charge/refund", body={"charge_id": charge_id}),
            models.ChargeRefundAnswer,
        )

    def settle_charge(
        self,
        *,
        charge_id: str,
        cost: int,
    ) -> models.ChargeSettleAnswer:
        """Change the cost of a charge.

        Sets the cost of a charge when it is known, for example after an estimate. Each limit then has the state that a charge of
        `cost` would have left. Tokens that were taken in excess come back, except for tokens that have come back with time.
        Missing tokens are taken, even below zero, by at most the `debt` of the limit. A charge is settled or refunded once; the
        next settlement changes nothing. A cost of 0 is a refund. For an id that was not issued the answer is 404. After 503, the
        settlement may have been made.

        Scope: use.
        """
        return self._transport.call(
            Call("POST", "/v1/limits/charge/settle", body={"charge_id": charge_id, "cost": cost}),
            models.ChargeSettleAnswer,
        )

    def acquire_lease(
        self,
        *,
        rule: str,
        tenant: str,
        subject: str | None = None,
        route: str | None = None,
        ip: str | None = None,
        ttl_seconds: int | None = None,
        dry_run: bool | None = None,
        key: str | None = None,
    ) -> models.LeaseAnswer:
        """Acquire one of a limited number of leases.

        Returns a lease of a limit of kind `concurrency` if a lease is free. The holder releases the lease after its work, and
        renews it during long work. Leases that are not renewed expire, so the leases of a dead holder become free again. If
        limits replace the named limit, the most specific limit that applies decides. The same `Idempotency-Key` returns the same
        lease while the lease lasts, so a retry takes no second lease.

        Scope: use. key: the Idempotency-Key; a new one if it is not given.
        """
        return self._transport.call(
            Call("POST", "/v1/leases", body={"rule": rule, "tenant": tenant, "subject": subject, "route": route, "ip": ip, "ttl_seconds": ttl_seconds, "dry_run": dry_run}, key=key or new_key()),
            models.LeaseAnswer,
        )

    def renew_lease(
        self,
        *,
        lease_id: str,
        ttl_seconds: int | None = None,
    ) -> models.LeaseAnswer:
        """Renew a lease.

        The lease ends `ttl_seconds` from now, even if it would have lasted longer. For a lease that has ended the answer is
        `lease_not_found`, because another caller may hold it now. Renew after a third of the time, which leaves time for retries.
        If the tenant, the subject or the address has been blocked, or the tenant has been suspended, the lease ends. The answer
        is then `forbidden` or `tenant_suspended`.

        Scope: use.
        """
        return self._transport.call(
            Call("POST", "/v1/leases/{lease_id}/renew", path={"lease_id": lease_id}, body={"ttl_seconds": ttl_seconds}),
            models.LeaseAnswer,
        )

    def release_lease(
        self,
        *,
        lease_id: str,
    ) -> None:
        """Release a lease.

        A release of a lease that has ended succeeds, so it can be repeated. After `unavailable` the lease still ends at its time,
        or earlier if the release is repeated.

        Scope: use.
        """
        self._transport.call_empty(
            Call("DELETE", "/v1/leases/{lease_id}", path={"lease_id": lease_id}),
        )

    def list_balances(
        self,
        *,
        tenant: str,
        subject: str | None = None,
        as_of: datetime | str | None = None,
    ) -> models.BalanceList:
        """The balances of a tenant.

        One balance for each meter of the plan, used or unused, and for each other meter that has a grant. With `as_of`, the
        balances that existed at that instant. The list is not paged.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/balances", path={"tenant": tenant}, query={"subject": subject, "as_of": as_of}),
            models.BalanceList,
        )

    def get_balance(
        self,
        *,
        tenant: str,
        meter: str,
        subject: str | None = None,
        as_of: datetime | str | None = None,
    ) -> models.Balance:
        """One balance with its open grants.

        The balance now, or at the instant `as_of`.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/balances/{meter}", path={"tenant": tenant, "meter": meter}, query={"subject": subject, "as_of": as_of}),
            models.Balance,
        )

    def list_entries(
        self,
        *,
        tenant: str,
        meter: str | None = None,
        subject: str | None = None,
        kind: params.EntryKind | None = None,
        from_: datetime | str | None = None,
        to: datetime | str | None = None,
        order: Literal["asc", "desc"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.EntryList:
        """Journal entries of a tenant, by meter and in the order in which they were written.

        Sorted by meter, by subject, and by the number of the entry in its balance. Entries are added to the journal and never
        changed.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/entries", path={"tenant": tenant}, query={"meter": meter, "subject": subject, "kind": kind, "from": from_, "to": to, "order": order, "limit": limit, "cursor": cursor}),
            models.EntryList,
        )

    def all_entries(
        self,
        *,
        tenant: str,
        meter: str | None = None,
        subject: str | None = None,
        kind: params.EntryKind | None = None,
        from_: datetime | str | None = None,
        to: datetime | str | None = None,
        order: Literal["asc", "desc"] | None = None,
        limit: int | None = None,
    ) -> Iterator[models.Entry]:
        """Journal entries of a tenant, by meter and in the order in which they were written. Asks for one page after the other;
        `limit` is the size of a page.
        """
        cursor: str | None = None
        while True:
            page = self.list_entries(tenant=tenant, meter=meter, subject=subject, kind=kind, from_=from_, to=to, order=order, limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def get_operation(
        self,
        *,
        tenant: str,
        operation_id: str,
        at: datetime | str | None = None,
    ) -> models.Operation:
        """One operation with its entries.

        If a key is used again after the service has forgotten it, the key names another operation. The answer is one of these
        operations.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/operations/{operation_id}", path={"tenant": tenant, "operation_id": operation_id}, query={"at": at}),
            models.Operation,
        )

    def list_periods(
        self,
        *,
        tenant: str,
        meter: str,
        next: int | None = None,
    ) -> models.PeriodList:
        """The open period and the following ones.

        The periods follow from the tenant's present terms.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/periods", path={"tenant": tenant}, query={"meter": meter, "next": next}),
            models.PeriodList,
        )

    def list_statements(
        self,
        *,
        tenant: str,
        meter: str | None = None,
        subject: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.StatementList:
        """The closed and open periods, sorted by start, latest first.

        The statements have no lines here. Periods with the same start are sorted by meter.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/statements", path={"tenant": tenant}, query={"meter": meter, "subject": subject, "limit": limit, "cursor": cursor}),
            models.StatementList,
        )

    def all_statements(
        self,
        *,
        tenant: str,
        meter: str | None = None,
        subject: str | None = None,
        limit: int | None = None,
    ) -> Iterator[models.StatementSummary]:
        """The closed and open periods, sorted by start, latest first. Asks for one page after the other; `limit` is the size of a
        page.
        """
        cursor: str | None = None
        while True:
            page = self.list_statements(tenant=tenant, meter=meter, subject=subject, limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def get_statement(
        self,
        *,
        tenant: str,
        meter: str,
        period_start: str,
        subject: str | None = None,
    ) -> models.Statement:
        """The statement of one period.

        The figures add up: opening + granted + amended + refunded - used - expired + adjusted = closing. With `format=csv` or
        `Accept: text/csv`, the answer is CSV. The file has a header row, a row for each kind of entry and source of grants, and a
        row with source `total` for each figure of the sum.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/statements/{meter}/{period_start}", path={"tenant": tenant, "meter": meter, "period_start": period_start}, query={"subject": subject}),
            models.Statement,
        )

    def list_usage(
        self,
        *,
        tenant: str,
        meter: str,
        from_: datetime | str,
        to: datetime | str,
        subject: str | None = None,
        by: Literal["hour", "day", "month"] | None = None,
        group_by: str | None = None,
        timezone: str | None = None,
    ) -> models.UsageList:
        """Use per hour, day or month.

        Lists the hours, days or months in [from, to) that have use, oldest first. The time is limited to 31 days by hour, 366
        days by day and 3660 days by month. The list is not paged.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/usage", path={"tenant": tenant}, query={"meter": meter, "subject": subject, "from": from_, "to": to, "by": by, "group_by": group_by, "timezone": timezone}),
            models.UsageList,
        )

    def list_denials(
        self,
        *,
        tenant: str,
        from_: datetime | str | None = None,
        to: datetime | str | None = None,
        limit: int | None = None,
    ) -> models.DenialList:
        """The refused requests of a tenant.

        Refused debits, consumes, holds, captures, charges and authorizes in [from, to). The answer has the number of denials in
        each minute, and the last denials with explanations. It does not have checks, dry runs, faults of a request (400) and
        failures of the service (503). A denial is listed about a second after its answer. Counts are kept for at least 35 days.
        The last 100 explanations of a tenant are kept. The list is not paged.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/denials", path={"tenant": tenant}, query={"from": from_, "to": to, "limit": limit}),
            models.DenialList,
        )

    def list_holds(
        self,
        *,
        tenant: str,
        status: params.HoldStatus | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.HoldList:
        """The holds of a tenant.

        Sorted by id. The list has active and ended holds.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/holds", path={"tenant": tenant}, query={"status": status, "limit": limit, "cursor": cursor}),
            models.HoldList,
        )

    def all_holds(
        self,
        *,
        tenant: str,
        status: params.HoldStatus | None = None,
        limit: int | None = None,
    ) -> Iterator[models.Hold]:
        """The holds of a tenant. Asks for one page after the other; `limit` is the size of a page."""
        cursor: str | None = None
        while True:
            page = self.list_holds(tenant=tenant, status=status, limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def get_hold(
        self,
        *,
        tenant: str,
        hold_id: str,
    ) -> models.Hold:
        """One hold.

        The hold and the units that were captured from it.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/holds/{hold_id}", path={"tenant": tenant, "hold_id": hold_id}),
            models.Hold,
        )

    def list_grants(
        self,
        *,
        tenant: str,
        meter: str | None = None,
        status: Literal["open", "pending", "active", "exhausted", "expired", "voided"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.GrantList:
        """The grants of a tenant.

        Sorted by meter, subject and id. The list includes ended grants.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/grants", path={"tenant": tenant}, query={"meter": meter, "status": status, "limit": limit, "cursor": cursor}),
            models.GrantList,
        )

    def all_grants(
        self,
        *,
        tenant: str,
        meter: str | None = None,
        status: Literal["open", "pending", "active", "exhausted", "expired", "voided"] | None = None,
        limit: int | None = None,
    ) -> Iterator[models.Grant]:
        """The grants of a tenant. Asks for one page after the other; `limit` is the size of a page."""
        cursor: str | None = None
        while True:
            page = self.list_grants(tenant=tenant, meter=meter, status=status, limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def grant(
        self,
        *,
        tenant: str,
        meter: str,
        amount: int,
        source: Literal["topup", "promo", "adjustment"],
        subject: str | None = None,
        grant_id: str | None = None,
        priority: int | None = None,
        effective_at: datetime | str | None = None,
        expires_at: datetime | str | None = None,
        cost_basis: str | None = None,
        reason: str | None = None,
        dry_run: bool | None = None,
        key: str | None = None,
    ) -> models.GrantAnswer:
        """Issue a grant.

        Adds units that can be used at once, or from `effective_at` on. Paid grants stay valid after the end of a period.

        Scope: admin. key: the Idempotency-Key; a new one if it is not given.
        """
        return self._transport.call(
            Call("POST", "/v1/tenants/{tenant}/grants", path={"tenant": tenant}, body={"meter": meter, "amount": amount, "source": source, "subject": subject, "grant_id": grant_id, "priority": priority, "effective_at": effective_at, "expires_at": expires_at, "cost_basis": cost_basis, "reason": reason, "dry_run": dry_run}, key=key or new_key()),
            models.GrantAnswer,
        )

    def void_grant(
        self,
        *,
        tenant: str,
        grant_id: str,
        reason: str,
        meter: str | None = None,
        dry_run: bool | None = None,
        key: str | None = None,
    ) -> models.ChangeAnswer:
        """Void the remainder of a grant.

        Units that were drawn or are held do not change.

        Scope: admin. key: the Idempotency-Key; a new one if it is not given.
        """
        return self._transport.call(
            Call("POST", "/v1/tenants/{tenant}/grants/{grant_id}/void", path={"tenant": tenant, "grant_id": grant_id}, body={"reason": reason, "meter": meter, "dry_run": dry_run}, key=key or new_key()),
            models.ChangeAnswer,
        )

    def extend_grant(
        self,
        *,
        tenant: str,
        grant_id: str,
        expires_at: datetime | str | None,
        reason: str,
        meter: str | None = None,
        dry_run: bool | None = None,
        key: str | None = None,
    ) -> models.GrantExtension:
        """Give a grant a later end.

        The grant keeps its id and its remaining and held units. Only its end changes, and with it its position in the burn order.
        A pending grant can be extended, too. The answer is 409 for a grant that is used up, has ended, was voided, never ends, or
        ends with its period (an allowance or a rollover). The answer is 400 for an end that is not later than the present end.

        Scope: admin. key: the Idempotency-Key; a new one if it is not given.
        """
        return self._transport.call(
            Call("POST", "/v1/tenants/{tenant}/grants/{grant_id}/extend", path={"tenant": tenant, "grant_id": grant_id}, body={"expires_at": expires_at, "reason": reason, "meter": meter, "dry_run": dry_run}, key=key or new_key()),
            models.GrantExtension,
        )

    def adjust(
        self,
        *,
        tenant: str,
        meter: str,
        amount: int,
        reason: str,
        if_match: str | None = None,
        subject: str | None = None,
        dry_run: bool | None = None,
        key: str | None = None,
    ) -> models.ChangeAnswer:
        """Correct a balance.

        A positive amount adds a grant with source adjustment that does not expire. A negative amount is drawn from the grants in
        burn order.

        Scope: admin. key: the Idempotency-Key; a new one if it is not given.
        """
        return self._transport.call(
            Call("POST", "/v1/tenants/{tenant}/adjustments", path={"tenant": tenant}, headers={"If-Match": if_match}, body={"meter": meter, "amount": amount, "reason": reason, "subject": subject, "dry_run": dry_run}, key=key or new_key()),
            models.ChangeAnswer,
        )

    def list_meters(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.MeterList:
        """All meters.

        Sorted by id.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/meters", query={"limit": limit, "cursor": cursor}),
            models.MeterList,
        )

    def all_meters(
        self,
        *,
        limit: int | None = None,
    ) -> Iterator[models.Meter]:
        """All meters. Asks for one page after the other; `limit` is the size of a page."""
        cursor: str | None = None
        while True:
            page = self.list_meters(limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def put_meter(
        self,
        *,
        meter: str,
        unit: str,
        description: str | None = None,
        kind: Literal["counter", "gauge"] | None = None,
        denial_replay: bool | None = None,
        dimensions: Sequence[str] | None = None,
    ) -> models.Meter:
        """Create or replace a meter.

        The answer is 201 for a new meter and 200 for an existing one.

        Scope: admin.
        """
        return self._transport.call(
            Call("PUT", "/v1/meters/{meter}", path={"meter": meter}, body={"unit": unit, "description": description, "kind": kind, "denial_replay": denial_replay, "dimensions": dimensions}),
            models.Meter,
        )

    def get_meter(
        self,
        *,
        meter: str,
    ) -> models.Meter:
        """One meter.

        Returns the stored object.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/meters/{meter}", path={"meter": meter}),
            models.Meter,
        )

    def delete_meter(
        self,
        *,
        meter: str,
    ) -> None:
        """Delete an unused meter.

        A meter cannot be deleted if a version of a plan (even an old one), a limit, or a balance with entries refers to it.

        Scope: admin.
        """
        self._transport.call_empty(
            Call("DELETE", "/v1/meters/{meter}", path={"meter": meter}),
        )

    def list_plans(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.PlanList:
        """All plans, each in its newest version.

        Sorted by id.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/plans", query={"limit": limit, "cursor": cursor}),
            models.PlanList,
        )

    def all_plans(
        self,
        *,
        limit: int | None = None,
    ) -> Iterator[models.Plan]:
        """All plans, each in its newest version. Asks for one page after the other; `limit` is the size of a page."""
        cursor: str | None = None
        while True:
            page = self.list_plans(limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def put_plan(
        self,
        *,
        plan: str,
        allowances: Sequence[params.Allowance],
        limits: Sequence[params.PlanLimit] | None = None,
        features: Mapping[str, bool | int] | None = None,
        apply: params.PlanApply | None = None,
    ) -> models.Plan:
        """Create a new version of a plan.

        Versions are immutable. A tenant has the version that was the newest at the start of its billing period, or at the last
        change of its terms. So a new version waits for the end of each tenant's billing period, unless it says `apply: now`. A
        PUT that changes nothing creates no version.

        Scope: admin.
        """
        return self._transport.call(
            Call("PUT", "/v1/plans/{plan}", path={"plan": plan}, body={"allowances": allowances, "limits": limits, "features": features, "apply": apply}),
            models.Plan,
        )

    def get_plan(
        self,
        *,
        plan: str,
    ) -> models.Plan:
        """The newest version of a plan.

        The allowances and limits of the plan.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/plans/{plan}", path={"plan": plan}),
            models.Plan,
        )

    def list_tenants(
        self,
        *,
        prefix: str | None = None,
        plan: str | None = None,
        status: Literal["active", "suspended"] | None = None,
        metadata: Mapping[str, str] | None = None,
        near: int | None = None,
        meter: str | None = None,
        sort: Literal["tenant", "remaining"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.TenantList:
        """All tenants, or those with a plan, a status, some metadata, or a used percentage.

        Sorted by id, or by remaining units. With a filter, a page may have fewer items than `limit`, or none, and further pages
        may follow. Continue until `next_cursor` is null. In a list sorted by id, each tenant is listed exactly once, for any
        changes between two pages. In a list sorted by remaining units, a tenant whose balance changes between two pages may be
        listed twice or be missing.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants", query={"prefix": prefix, "plan": plan, "status": status, "metadata": metadata, "near": near, "meter": meter, "sort": sort, "limit": limit, "cursor": cursor}),
            models.TenantList,
        )

    def all_tenants(
        self,
        *,
        prefix: str | None = None,
        plan: str | None = None,
        status: Literal["active", "suspended"] | None = None,
        metadata: Mapping[str, str] | None = None,
        near: int | None = None,
        meter: str | None = None,
        sort: Literal["tenant", "remaining"] | None = None,
        limit: int | None = None,
    ) -> Iterator[models.Tenant]:
        """All tenants, or those with a plan, a status, some metadata, or a used percentage. Asks for one page after the other;
        `limit` is the size of a page.
        """
        cursor: str | None = None
        while True:
            page = self.list_tenants(prefix=prefix, plan=plan, status=status, metadata=metadata, near=near, meter=meter, sort=sort, limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def put_tenant(
        self,
        *,
        tenant: str,
        plan: str,
        if_match: str | None = None,
        anchor: datetime | str | None = None,
        timezone: str | None = None,
        status: params.TenantStatus | None = None,
        metadata: Mapping[str, Any] | None = None,
        overrides: Mapping[str, int] | None = None,
        features: Mapping[str, bool | int] | None = None,
    ) -> models.Tenant:
        """Create or replace a tenant.

        Open periods do not change. A change of plan, anchor, zone or overrides waits for the end of the billing period, and the
        features of the body wait with it: the answer has it as `pending`. Fields that are not in the body get their defaults. A
        request for the terms that are in force, or that wait, changes no terms. Other terms beside a pending change are refused
        with 409 `change_pending`. With If-Match, the request replaces a tenant and never creates one.

        Scope: admin.
        """
        return self._transport.call(
            Call("PUT", "/v1/tenants/{tenant}", path={"tenant": tenant}, headers={"If-Match": if_match}, body={"plan": plan, "anchor": anchor, "timezone": timezone, "status": status, "metadata": metadata, "overrides": overrides, "features": features}),
            models.Tenant,
        )

    def patch_tenant(
        self,
        *,
        tenant: str,
        if_match: str | None = None,
        plan: str | None = None,
        anchor: datetime | str | None = None,
        timezone: str | None = None,
        status: params.TenantStatus | None = None,
        metadata: Mapping[str, Any] | None = None,
        apply: Literal["now", "next_period"] | None = None,
        effective_at: datetime | str | None = None,
        prorate: bool | None = None,
        usage: Literal["carry", "reset", "add"] | None = None,
        overrides: Mapping[str, int | None] | None = None,
        features: Mapping[str, bool | int | Any] | None = None,
        reason: str | None = None,
        dry_run: bool | None = None,
        key: str | None = None,
    ) -> models.TenantChange:
        """Change the given fields of a tenant.

        Absent fields do not change. New terms, such as another plan, take effect at the end of the billing period, at once if
        `apply` is `now`, or at `effective_at`. Until then nothing moves: allowances, features, gauges, rate limits of plans and
        `match.plan`. Then all of them move together. One change can wait: another one that would wait is refused with 409
        `change_pending`. A change that applies now is allowed, and the pending change stays. It keeps the members that its
        request named. All other members follow the change that applies now. If the request has an `Idempotency-Key`, a retry
        within 31 days returns the first answer and changes nothing.

        Scope: admin. key: the Idempotency-Key; a new one if it is not given.
        """
        return self._transport.call(
            Call("PATCH", "/v1/tenants/{tenant}", path={"tenant": tenant}, headers={"If-Match": if_match}, body={"plan": plan, "anchor": anchor, "timezone": timezone, "status": status, "metadata": metadata, "apply": apply, "effective_at": effective_at, "prorate": prorate, "usage": usage, "overrides": overrides, "features": features, "reason": reason, "dry_run": dry_run}, key=key or new_key()),
            models.TenantChange,
        )

    def get_tenant(
        self,
        *,
        tenant: str,
    ) -> models.Tenant:
        """One tenant.

        Returns the tenant with the terms that are in force now, and the change that waits, with an ETag for If-Match.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}", path={"tenant": tenant}),
            models.Tenant,
        )

    def delete_pending(
        self,
        *,
        tenant: str,
    ) -> None:
        """Take back the change of a tenant that waits.

        The terms in force stay. 404 if no change waits, also if it has just taken effect.

        Scope: admin.
        """
        self._transport.call_empty(
            Call("DELETE", "/v1/tenants/{tenant}/pending", path={"tenant": tenant}),
        )

    def list_gauges(
        self,
        *,
        tenant: str,
        meter: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.GaugeList:
        """The gauges of a tenant, sorted by meter and subject.

        The list has the gauges of the tenant's plan, even if they were never set, and those gauges of its subjects that were set.
        It also has gauges that the plan no longer has, with a limit of 0, until their value is 0.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/gauges", path={"tenant": tenant}, query={"meter": meter, "limit": limit, "cursor": cursor}),
            models.GaugeList,
        )

    def all_gauges(
        self,
        *,
        tenant: str,
        meter: str | None = None,
        limit: int | None = None,
    ) -> Iterator[models.Gauge]:
        """The gauges of a tenant, sorted by meter and subject. Asks for one page after the other; `limit` is the size of a page."""
        cursor: str | None = None
        while True:
            page = self.list_gauges(tenant=tenant, meter=meter, limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def set_gauge(
        self,
        *,
        tenant: str,
        meter: str,
        subject: str | None = None,
        value: int | None = None,
        delta: int | None = None,
        dry_run: bool | None = None,
        key: str | None = None,
    ) -> models.Gauge:
        """Set a gauge, such as the seats of a team, or change it by a difference.

        A value above the plan's amount is refused with 403 `gauge_limit`, and the old value stays. If a change of the plan has
        left the value above the amount, the value can only fall.

        Scope: use. key: the Idempotency-Key; a new one if it is not given.
        """
        return self._transport.call(
            Call("PUT", "/v1/tenants/{tenant}/gauges/{meter}", path={"tenant": tenant, "meter": meter}, query={"subject": subject}, body={"value": value, "delta": delta, "dry_run": dry_run}, key=key or new_key()),
            models.Gauge,
        )

    def get_gauge(
        self,
        *,
        tenant: str,
        meter: str,
        subject: str | None = None,
    ) -> models.Gauge:
        """The present value of a gauge.

        A gauge that was never set is 0.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/gauges/{meter}", path={"tenant": tenant, "meter": meter}, query={"subject": subject}),
            models.Gauge,
        )

    def list_gauge_entries(
        self,
        *,
        tenant: str,
        meter: str,
        subject: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.GaugeEntryList:
        """The journal of a gauge, newest first.

        Each change has its key, the values before and after, and the limit at that time.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/gauges/{meter}/entries", path={"tenant": tenant, "meter": meter}, query={"subject": subject, "limit": limit, "cursor": cursor}),
            models.GaugeEntryList,
        )

    def all_gauge_entries(
        self,
        *,
        tenant: str,
        meter: str,
        subject: str | None = None,
        limit: int | None = None,
    ) -> Iterator[models.GaugeEntry]:
        """The journal of a gauge, newest first. Asks for one page after the other; `limit` is the size of a page."""
        cursor: str | None = None
        while True:
            page = self.list_gauge_entries(tenant=tenant, meter=meter, subject=subject, limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def get_features(
        self,
        *,
        tenant: str,
    ) -> models.TenantFeatures:
        """The features that a tenant has now.

        The features in the newest version of the tenant's plan, with the tenant's overrides. They are read from memory, as in a
        check of a feature.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/features", path={"tenant": tenant}),
            models.TenantFeatures,
        )

    def list_terms(
        self,
        *,
        tenant: str,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.TermsList:
        """The history of a tenant's plan, anchor, zone and overrides with their reasons, oldest first.

        One item for each change, with the instant from which the terms are in force.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/tenants/{tenant}/terms", path={"tenant": tenant}, query={"limit": limit, "cursor": cursor}),
            models.TermsList,
        )

    def all_terms(
        self,
        *,
        tenant: str,
        limit: int | None = None,
    ) -> Iterator[models.Terms]:
        """The history of a tenant's plan, anchor, zone and overrides with their reasons, oldest first. Asks for one page after the
        other; `limit` is the size of a page.
        """
        cursor: str | None = None
        while True:
            page = self.list_terms(tenant=tenant, limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def list_limits(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.LimitList:
        """All rate limits.

        Sorted by id. Limits of plans are not here; they are part of their plan.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/limits", query={"limit": limit, "cursor": cursor}),
            models.LimitList,
        )

    def all_limits(
        self,
        *,
        limit: int | None = None,
    ) -> Iterator[models.Limit]:
        """All rate limits. Asks for one page after the other; `limit` is the size of a page."""
        cursor: str | None = None
        while True:
            page = self.list_limits(limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def put_limit(
        self,
        *,
        rule: str,
        per: Sequence[params.LimitPer],
        kind: params.LimitKind,
        match: params.LimitMatch | None = None,
        rate: str | None = None,
        burst: int | None = None,
        cost: int | None = None,
        costs: Sequence[params.LimitCost] | None = None,
        cost_by: params.LimitCostBy | None = None,
        replaces: str | None = None,
        timezone: str | None = None,
        mode: params.LimitMode | None = None,
        on_backend_error: params.OnBackendError | None = None,
        region_share: int | None = None,
        debt: int | None = None,
        ban: params.LimitBan | None = None,
        counts: params.LimitCounts | None = None,
        route_key: params.LimitRouteKey | None = None,
        normalize: Sequence[Literal["case", "trailing_slash", "matrix", "encoded_slash"]] | None = None,
        ip_prefix: params.LimitIPPrefix | None = None,
    ) -> models.Limit:
        """Create or replace a rate limit.

        The answer is 201 for a new limit. Every instance applies the limit within a second.

        Scope: admin.
        """
        return self._transport.call(
            Call("PUT", "/v1/limits/{rule}", path={"rule": rule}, body={"per": per, "match": match, "kind": kind, "rate": rate, "burst": burst, "cost": cost, "costs": costs, "cost_by": cost_by, "replaces": replaces, "timezone": timezone, "mode": mode, "on_backend_error": on_backend_error, "region_share": region_share, "debt": debt, "ban": ban, "counts": counts, "route_key": route_key, "normalize": normalize, "ip_prefix": ip_prefix}),
            models.Limit,
        )

    def get_limit(
        self,
        *,
        rule: str,
        explain: Literal["1"] | None = None,
        tenant: str | None = None,
        subject: str | None = None,
        plan: str | None = None,
    ) -> models.Limit:
        """One rate limit.

        Returns the stored limit. With `explain=1`, it also returns an explanation in numbers.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/limits/{rule}", path={"rule": rule}, query={"explain": explain, "tenant": tenant, "subject": subject, "plan": plan}),
            models.Limit,
        )

    def delete_limit(
        self,
        *,
        rule: str,
    ) -> None:
        """Delete a rate limit.

        Every instance stops applying the limit within a second. If another limit replaces this one, the answer is 409. Delete
        that limit first.

        Scope: admin.
        """
        self._transport.call_empty(
            Call("DELETE", "/v1/limits/{rule}", path={"rule": rule}),
        )

    def reset_limit(
        self,
        *,
        rule: str,
        tenant: str | None = None,
        subject: str | None = None,
        route: str | None = None,
        ip: str | None = None,
    ) -> models.ResetAnswer:
        """Reset a bucket.

        The body names one bucket by exactly the dimensions that divide the limit's buckets. The bucket returns to its state
        before the first charge. For a limit of a plan, or a limit that a plan's limit replaces, the reset affects the limit that
        applies to the tenant. For kind concurrency, all leases of the bucket end. A repetition changes nothing. The service
        writes the line in the audit log first, also for a repetition. If it cannot write the line, it resets nothing.

        Scope: admin.
        """
        return self._transport.call(
            Call("POST", "/v1/limits/{rule}/reset", path={"rule": rule}, body={"tenant": tenant, "subject": subject, "route": route, "ip": ip}),
            models.ResetAnswer,
        )

    def get_limit_state(
        self,
        *,
        rule: str,
        tenant: str | None = None,
        subject: str | None = None,
        route: str | None = None,
        ip: str | None = None,
    ) -> models.LimitState:
        """The state of a bucket.

        The parameters name one bucket by the dimensions that divide the limit's buckets, as for a reset. For a limit of a plan,
        or a limit that a plan's limit replaces, the answer is about the limit that applies to the tenant. Nothing is charged.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/limits/{rule}/state", path={"rule": rule}, query={"tenant": tenant, "subject": subject, "route": route, "ip": ip}),
            models.LimitState,
        )

    def get_limit_top(
        self,
        *,
        rule: str,
        limit: int | None = None,
    ) -> models.LimitTop:
        """The fullest buckets of a limit.

        Reads all buckets of the limit, including those of plans' limits with the same id, and returns the fullest. These are the
        buckets with the largest used share. Other requests are still served. An instance does this for one caller at a time.
        Another caller waits up to a second and then gets 503 `queue_full`. Keys that are bound to a tenant are refused.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/limits/{rule}/top", path={"rule": rule}, query={"limit": limit}),
            models.LimitTop,
        )

    def get_limit_shadow(
        self,
        *,
        rule: str,
    ) -> models.LimitShadow:
        """The denials that a limit in shadow mode would have made.

        For the last hour, day and week, the answer has the number of requests that the limit would have denied if it had been
        enforced, and the number of their tenants. It also has the number of requests that enforced limits denied, if the limit
        decided the same requests. Consumes, charges, authorizes and leases count. Checks, dry runs, charges after the fact, and
        requests that failed (400 and 503) do not. Only the time in which the limit was in shadow mode counts. A request is
        counted about a second after its answer. Counts are kept for at least 35 days, even if the limit is now enforced or
        deleted. Limits of plans with this id are added up. Keys that are bound to a tenant are refused.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/limits/{rule}/shadow", path={"rule": rule}),
            models.LimitShadow,
        )

    def list_limit_overrides(
        self,
        *,
        rule: str,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.LimitOverrideList:
        """The overrides of a limit.

        Sorted by tenant and subject. The list does not have expired overrides.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/limits/{rule}/overrides", path={"rule": rule}, query={"limit": limit, "cursor": cursor}),
            models.LimitOverrideList,
        )

    def all_limit_overrides(
        self,
        *,
        rule: str,
        limit: int | None = None,
    ) -> Iterator[models.LimitOverride]:
        """The overrides of a limit. Asks for one page after the other; `limit` is the size of a page."""
        cursor: str | None = None
        while True:
            page = self.list_limit_overrides(rule=rule, limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def put_limit_override(
        self,
        *,
        rule: str,
        tenant: str,
        rate: str | None = None,
        burst: int | None = None,
        expires_at: datetime | str | None = None,
    ) -> models.LimitOverride:
        """Change rate and burst of a limit for a tenant.

        The override applies to the tenant as a whole, and to its subjects that have no override of their own.

        Scope: admin.
        """
        return self._transport.call(
            Call("PUT", "/v1/limits/{rule}/overrides/{tenant}", path={"rule": rule, "tenant": tenant}, body={"rate": rate, "burst": burst, "expires_at": expires_at}),
            models.LimitOverride,
        )

    def get_limit_override(
        self,
        *,
        rule: str,
        tenant: str,
    ) -> models.LimitOverride:
        """The override of a limit for a tenant.

        Returns the stored object.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/limits/{rule}/overrides/{tenant}", path={"rule": rule, "tenant": tenant}),
            models.LimitOverride,
        )

    def delete_limit_override(
        self,
        *,
        rule: str,
        tenant: str,
    ) -> None:
        """Delete the override of a limit for a tenant.

        The numbers of the limit apply again.

        Scope: admin.
        """
        self._transport.call_empty(
            Call("DELETE", "/v1/limits/{rule}/overrides/{tenant}", path={"rule": rule, "tenant": tenant}),
        )

    def put_subject_limit_override(
        self,
        *,
        rule: str,
        tenant: str,
        subject: str,
        rate: str | None = None,
        burst: int | None = None,
        expires_at: datetime | str | None = None,
    ) -> models.LimitOverride:
        """Change rate and burst of a limit for a subject of a tenant.

        The override applies to this subject instead of the numbers of the tenant and of the limit.

        Scope: admin.
        """
        return self._transport.call(
            Call("PUT", "/v1/limits/{rule}/overrides/{tenant}/{subject}", path={"rule": rule, "tenant": tenant, "subject": subject}, body={"rate": rate, "burst": burst, "expires_at": expires_at}),
            models.LimitOverride,
        )

    def get_subject_limit_override(
        self,
        *,
        rule: str,
        tenant: str,
        subject: str,
    ) -> models.LimitOverride:
        """The override of a limit for a subject of a tenant.

        Returns the stored object.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/limits/{rule}/overrides/{tenant}/{subject}", path={"rule": rule, "tenant": tenant, "subject": subject}),
            models.LimitOverride,
        )

    def delete_subject_limit_override(
        self,
        *,
        rule: str,
        tenant: str,
        subject: str,
    ) -> None:
        """Delete the override of a limit for a subject of a tenant.

        The numbers of the tenant's override, or of the limit, apply again.

        Scope: admin.
        """
        self._transport.call_empty(
            Call("DELETE", "/v1/limits/{rule}/overrides/{tenant}/{subject}", path={"rule": rule, "tenant": tenant, "subject": subject}),
        )

    def list_blocks(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.BlockList:
        """All blocks in force.

        Blocks and exemptions that have not expired.

        Scope: admin.
        """
        return self._transport.call(
            Call("GET", "/v1/blocks", query={"limit": limit, "cursor": cursor}),
            models.BlockList,
        )

    def all_blocks(
        self,
        *,
        limit: int | None = None,
    ) -> Iterator[models.Block]:
        """All blocks in force. Asks for one page after the other; `limit` is the size of a page."""
        cursor: str | None = None
        while True:
            page = self.list_blocks(limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def put_block(
        self,
        *,
        kind: params.BlockKind,
        value: str,
        action: params.BlockAction | None = None,
        tenant: str | None = None,
        expires_at: datetime | str | None = None,
        reason: str | None = None,
    ) -> models.Block:
        """Block or exempt a tenant, a subject or an address.

        Every instance applies the block within a second. A block refuses requests. An exemption (`allow`) exempts requests from
        rate limits.

        Scope: admin.
        """
        return self._transport.call(
            Call("PUT", "/v1/blocks/{kind}/{value}", path={"kind": kind, "value": value}, body={"action": action, "tenant": tenant, "expires_at": expires_at, "reason": reason}),
            models.Block,
        )

    def get_block(
        self,
        *,
        kind: params.BlockKind,
        value: str,
        tenant: str | None = None,
    ) -> models.Block:
        """One block of a tenant, a subject or an address.

        Returns the stored object.

        Scope: admin.
        """
        return self._transport.call(
            Call("GET", "/v1/blocks/{kind}/{value}", path={"kind": kind, "value": value}, query={"tenant": tenant}),
            models.Block,
        )

    def delete_block(
        self,
        *,
        kind: params.BlockKind,
        value: str,
        tenant: str | None = None,
    ) -> None:
        """Delete a block of a tenant, a subject or an address.

        Every instance stops applying the block within a second.

        Scope: admin.
        """
        self._transport.call_empty(
            Call("DELETE", "/v1/blocks/{kind}/{value}", path={"kind": kind, "value": value}, query={"tenant": tenant}),
        )

    def put_block_prefix(
        self,
        *,
        kind: params.BlockKind,
        value: str,
        bits: int,
        action: params.BlockAction | None = None,
        expires_at: datetime | str | None = None,
        reason: str | None = None,
    ) -> models.Block:
        """Block or exempt a prefix of addresses.

        Like the block of one address, for all addresses that begin with these bits.

        Scope: admin.
        """
        return self._transport.call(
            Call("PUT", "/v1/blocks/{kind}/{value}/{bits}", path={"kind": kind, "value": value, "bits": bits}, body={"action": action, "expires_at": expires_at, "reason": reason}),
            models.Block,
        )

    def get_block_prefix(
        self,
        *,
        kind: params.BlockKind,
        value: str,
        bits: int,
        tenant: str | None = None,
    ) -> models.Block:
        """One block of a prefix of addresses.

        Returns the stored object.

        Scope: admin.
        """
        return self._transport.call(
            Call("GET", "/v1/blocks/{kind}/{value}/{bits}", path={"kind": kind, "value": value, "bits": bits}, query={"tenant": tenant}),
            models.Block,
        )

    def delete_block_prefix(
        self,
        *,
        kind: params.BlockKind,
        value: str,
        bits: int,
        tenant: str | None = None,
    ) -> None:
        """Delete a block of a prefix of addresses.

        Every instance stops applying the block within a second.

        Scope: admin.
        """
        self._transport.call_empty(
            Call("DELETE", "/v1/blocks/{kind}/{value}/{bits}", path={"kind": kind, "value": value, "bits": bits}, query={"tenant": tenant}),
        )

    def start_roll(
        self,
        *,
        as_of: datetime | str | None = None,
    ) -> models.Roll:
        """Close due periods and open the next ones.

        Balances are correct without a roll: a period is closed and the next one is opened when its balance is next used. A roll
        does this in the background for unused balances. A repetition changes nothing.

        Scope: admin.
        """
        return self._transport.call(
            Call("POST", "/v1/rolls", body={"as_of": as_of}, repeatable=False),
            models.Roll,
        )

    def get_roll(
        self,
        *,
        roll_id: str,
    ) -> models.Roll:
        """The progress of a roll.

        The numbers of balances, while the roll runs and afterwards.

        Scope: admin.
        """
        return self._transport.call(
            Call("GET", "/v1/rolls/{roll_id}", path={"roll_id": roll_id}),
            models.Roll,
        )

    def list_verifications(
        self,
        *,
        tenant: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.VerificationList:
        """The verifications, newest first.

        Verifications that `POST /v1/verifications` started, without their differences. A single verification has its differences.
        The continuous verification of each instance is in its metrics. A key that is bound to a tenant sees only verifications of
        that tenant.

        Scope: admin.
        """
        return self._transport.call(
            Call("GET", "/v1/verifications", query={"tenant": tenant, "limit": limit, "cursor": cursor}),
            models.VerificationList,
        )

    def all_verifications(
        self,
        *,
        tenant: str | None = None,
        limit: int | None = None,
    ) -> Iterator[models.VerificationSummary]:
        """The verifications, newest first. Asks for one page after the other; `limit` is the size of a page."""
        cursor: str | None = None
        while True:
            page = self.list_verifications(tenant=tenant, limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def start_verification(
        self,
        *,
        tenant: str | None = None,
    ) -> models.Verification:
        """Verify that journal, balances, grants, periods and cached copies agree.

        Compares every balance with sums over the journal. This runs in the background, in chunks that do not slow down requests.
        The service does this continuously at a low rate. This request starts a complete pass now.

        Scope: admin.
        """
        return self._transport.call(
            Call("POST", "/v1/verifications", body={"tenant": tenant}),
            models.Verification,
        )

    def get_verification(
        self,
        *,
        verification_id: str,
    ) -> models.Verification:
        """The progress and the result of a verification.

        The objects that were compared, and the differences that were found.

        Scope: admin.
        """
        return self._transport.call(
            Call("GET", "/v1/verifications/{verification_id}", path={"verification_id": verification_id}),
            models.Verification,
        )

    def list_seals(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.SealList:
        """The sealed days, newest first.

        The list has no proofs. A single seal has its proofs.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/seals", query={"limit": limit, "cursor": cursor}),
            models.SealList,
        )

    def all_seals(
        self,
        *,
        limit: int | None = None,
    ) -> Iterator[models.SealSummary]:
        """The sealed days, newest first. Asks for one page after the other; `limit` is the size of a page."""
        cursor: str | None = None
        while True:
            page = self.list_seals(limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def get_seal(
        self,
        *,
        day: str,
    ) -> models.Seal:
        """The seal of a day, for somebody else to keep.

        The answer is the file that `quotasvc seal` writes. With this file, `quotasvc verify --seal FILE` can prove later that the
        journal up to that day has not changed.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/seals/{day}", path={"day": day}),
            models.Seal,
        )

    def get_status(
        self,
    ) -> models.ServiceStatus:
        """The present state of the service.

        The requests of the answering instance in the last minute, the parts that do not work and the reasons, the most frequent
        refusals of the last hour, and the last jobs. There is an answer even while PostgreSQL or Redis is down. Refusals and jobs
        are those of all instances and a few seconds old. They are absent while the service cannot read them. Keys that are bound
        to a tenant are refused.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/status"),
            models.ServiceStatus,
        )

    def create_portal_session(
        self,
        *,
        tenant: str,
        expires_in_seconds: int | None = None,
        return_url: str | None = None,
    ) -> models.PortalSession:
        """Create a link to the page of a tenant, for its people.

        Until the link ends, it shows the tenant's units and use, read-only. It can be opened, or shown inside another page.
        Anybody who has the link sees the page, so give it only to people who have signed in to your own pages. A link ends at its
        time, when the key that created it ends, or when the links of its tenant are ended. A retry creates another link. A tenant
        has at most 200 links that its own keys have created, and 200 that others have created. A further link by a key of the
        tenant is refused with 409 `too_many`. A further link by another key ends the oldest link of these. Links that have ended
        do not count.

        Scope: admin.
        """
        return self._transport.call(
            Call("POST", "/v1/portal-sessions", body={"tenant": tenant, "expires_in_seconds": expires_in_seconds, "return_url": return_url}, repeatable=False),
            models.PortalSession,
        )

    def end_portal_sessions(
        self,
        *,
        tenant: str,
    ) -> None:
        """End all links to the page of a tenant.

        From the next request on, open pages show nothing. A repetition changes nothing.

        Scope: admin.
        """
        self._transport.call_empty(
            Call("DELETE", "/v1/tenants/{tenant}/portal-sessions", path={"tenant": tenant}),
        )

    def create_key(
        self,
        *,
        name: str,
        scopes: Sequence[params.KeyScope],
        tenant: str | None = None,
        expires_at: datetime | str | None = None,
    ) -> models.NewKey:
        """Create a key.

        The answer has the secret, which is shown only this time. A key with a tenant is bound to it. Such a key is refused for
        every other tenant, and lists show it only that tenant. A bound admin key creates only keys that are bound to the same
        tenant. A retry creates another key.

        Scope: admin.
        """
        return self._transport.call(
            Call("POST", "/v1/keys", body={"name": name, "scopes": scopes, "tenant": tenant, "expires_at": expires_at}, repeatable=False),
            models.NewKey,
        )

    def list_keys(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.KeyList:
        """The keys, without secrets.

        The list includes revoked and expired keys.

        Scope: admin.
        """
        return self._transport.call(
            Call("GET", "/v1/keys", query={"limit": limit, "cursor": cursor}),
            models.KeyList,
        )

    def all_keys(
        self,
        *,
        limit: int | None = None,
    ) -> Iterator[models.Key]:
        """The keys, without secrets. Asks for one page after the other; `limit` is the size of a page."""
        cursor: str | None = None
        while True:
            page = self.list_keys(limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def get_key(
        self,
        *,
        key_id: str,
    ) -> models.Key:
        """One key, without its secret.

        The scopes of the key, its state, and the time of its last use.

        Scope: admin.
        """
        return self._transport.call(
            Call("GET", "/v1/keys/{key_id}", path={"key_id": key_id}),
            models.Key,
        )

    def revoke_key(
        self,
        *,
        key_id: str,
    ) -> None:
        """Revoke a key.

        Every instance refuses the key within a second. A repetition changes nothing.

        Scope: admin.
        """
        self._transport.call_empty(
            Call("DELETE", "/v1/keys/{key_id}", path={"key_id": key_id}),
        )

    def rotate_key(
        self,
        *,
        key_id: str,
        overlap_seconds: int | None = None,
    ) -> models.NewKey:
        """Give a key a new secret.

        The key keeps its id. Its previous secrets work for another `overlap_seconds`. By default, they stop working at once. The
        answer has the new secret, which is shown only this time. A retry creates another secret.

        Scope: admin.
        """
        return self._transport.call(
            Call("POST", "/v1/keys/{key_id}/rotate", path={"key_id": key_id}, body={"overlap_seconds": overlap_seconds}, repeatable=False),
            models.NewKey,
        )

    def list_audit(
        self,
        *,
        tenant: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        from_: datetime | str | None = None,
        to: datetime | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.AuditList:
        """The changes by administrators, newest first.

        A line is written in the transaction of its change. A key that is bound to a tenant sees only the lines of that tenant.

        Scope: admin.
        """
        return self._transport.call(
            Call("GET", "/v1/audit", query={"tenant": tenant, "actor": actor, "action": action, "from": from_, "to": to, "limit": limit, "cursor": cursor}),
            models.AuditList,
        )

    def all_audit(
        self,
        *,
        tenant: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        from_: datetime | str | None = None,
        to: datetime | str | None = None,
        limit: int | None = None,
    ) -> Iterator[models.AuditLine]:
        """The changes by administrators, newest first. Asks for one page after the other; `limit` is the size of a page."""
        cursor: str | None = None
        while True:
            page = self.list_audit(tenant=tenant, actor=actor, action=action, from_=from_, to=to, limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def list_events(
        self,
        *,
        tenant: str | None = None,
        type: params.EventType | None = None,
        after: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.EventList:
        """The events, oldest first.

        Events of the last 90 days. An event is written in the transaction of its change, and is listed within about a second.
        Events are listed in the order of their ids. So a client that passes the last `event_id` as `after` misses no event. A key
        that is bound to a tenant sees only the events of that tenant.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/events", query={"tenant": tenant, "type": type, "after": after, "limit": limit, "cursor": cursor}),
            models.EventList,
        )

    def all_events(
        self,
        *,
        tenant: str | None = None,
        type: params.EventType | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> Iterator[models.Event]:
        """The events, oldest first. Asks for one page after the other; `limit` is the size of a page."""
        cursor: str | None = None
        while True:
            page = self.list_events(tenant=tenant, type=type, after=after, limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def export_catalog(
        self,
    ) -> models.Catalog:
        """The catalogue as one document.

        Meters, plans in their newest version, limits and blocks, each with its defaults. POST accepts this document unchanged. It
        has no tenants.

        Scope: admin.
        """
        return self._transport.call(
            Call("GET", "/v1/catalog"),
            models.Catalog,
        )

    def apply_catalog(
        self,
        *,
        if_match: str | None = None,
        meters: Mapping[str, params.MeterRequest] | None = None,
        plans: Mapping[str, params.PlanRequest] | None = None,
        limits: Mapping[str, params.LimitRequest] | None = None,
        tenants: Mapping[str, params.TenantRequest] | None = None,
        blocks: Sequence[params.CatalogBlock] | None = None,
        dry_run: bool | None = None,
        prune: bool | None = None,
    ) -> models.CatalogDiff:
        """Change the catalogue to the content of a document.

        Like `quotasvc apply` for catalog.yaml. All changes are made in one transaction, or none. Objects that the document does
        not name do not change unless `prune` is true. A repetition changes nothing. The answer reports all faults together.

        Scope: admin.
        """
        return self._transport.call(
            Call("POST", "/v1/catalog", headers={"If-Match": if_match}, body={"meters": meters, "plans": plans, "limits": limits, "tenants": tenants, "blocks": blocks, "dry_run": dry_run, "prune": prune}),
            models.CatalogDiff,
        )

    def create_webhook(
        self,
        *,
        url: str,
        types: Sequence[params.EventType],
        tenant: str | None = None,
        status: params.WebhookStatus | None = None,
    ) -> models.NewWebhookEndpoint:
        """Create a webhook that sends events to a receiver.

        The answer has the secret with which deliveries are signed, as in Standard Webhooks. The secret is shown only this time. A
        retry creates another webhook. There are at most 500 webhooks.

        Scope: admin.
        """
        return self._transport.call(
            Call("POST", "/v1/webhooks", body={"url": url, "types": types, "tenant": tenant, "status": status}, repeatable=False),
            models.NewWebhookEndpoint,
        )

    def list_webhooks(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.WebhookEndpointList:
        """The webhooks, without secrets.

        A key that is bound to a tenant sees only the webhooks of that tenant.

        Scope: admin.
        """
        return self._transport.call(
            Call("GET", "/v1/webhooks", query={"limit": limit, "cursor": cursor}),
            models.WebhookEndpointList,
        )

    def all_webhooks(
        self,
        *,
        limit: int | None = None,
    ) -> Iterator[models.WebhookEndpoint]:
        """The webhooks, without secrets. Asks for one page after the other; `limit` is the size of a page."""
        cursor: str | None = None
        while True:
            page = self.list_webhooks(limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def get_webhook(
        self,
        *,
        webhook_id: str,
    ) -> models.WebhookEndpoint:
        """One webhook.

        The webhook without its secret.

        Scope: admin.
        """
        return self._transport.call(
            Call("GET", "/v1/webhooks/{webhook_id}", path={"webhook_id": webhook_id}),
            models.WebhookEndpoint,
        )

    def patch_webhook(
        self,
        *,
        webhook_id: str,
        url: str | None = None,
        types: Sequence[params.EventType] | None = None,
        status: params.WebhookStatus | None = None,
    ) -> models.WebhookEndpoint:
        """Change or pause a webhook.

        A paused webhook gets no events. Deliveries that are pending when it is paused are skipped. A replay can deliver them
        later.

        Scope: admin.
        """
        return self._transport.call(
            Call("PATCH", "/v1/webhooks/{webhook_id}", path={"webhook_id": webhook_id}, body={"url": url, "types": types, "status": status}, repeatable=False),
            models.WebhookEndpoint,
        )

    def delete_webhook(
        self,
        *,
        webhook_id: str,
    ) -> None:
        """Delete a webhook.

        Pending deliveries are skipped.

        Scope: admin.
        """
        self._transport.call_empty(
            Call("DELETE", "/v1/webhooks/{webhook_id}", path={"webhook_id": webhook_id}),
        )

    def test_webhook(
        self,
        *,
        webhook_id: str,
    ) -> models.WebhookTest:
        """Call the receiver once, as a test.

        The service calls the receiver now, with an event of the type `webhook.test`, and returns the result of the call. This
        works for a paused webhook, too.

        Scope: admin.
        """
        return self._transport.call(
            Call("POST", "/v1/webhooks/{webhook_id}/test", path={"webhook_id": webhook_id}, repeatable=False),
            models.WebhookTest,
        )

    def rotate_webhook(
        self,
        *,
        webhook_id: str,
        overlap_seconds: int | None = None,
    ) -> models.NewWebhookEndpoint:
        """Give a webhook a new secret.

        For another `overlap_seconds`, deliveries have a signature of each previous secret. By default, the previous secrets are
        not used any more. The answer has the new secret, which is shown only this time. A retry creates another secret.

        Scope: admin.
        """
        return self._transport.call(
            Call("POST", "/v1/webhooks/{webhook_id}/rotate", path={"webhook_id": webhook_id}, body={"overlap_seconds": overlap_seconds}, repeatable=False),
            models.NewWebhookEndpoint,
        )

    def replay_webhook(
        self,
        *,
        webhook_id: str,
        from_: datetime | str,
        to: datetime | str | None = None,
    ) -> models.WebhookReplay:
        """Deliver events again.

        Replays the events of the types and the tenant of the webhook, even events that were delivered, are dead, or happened
        while the webhook was paused. The `webhook-id` of an event stays the same. A replay has at most 10,000 events. `next_from`
        is then the start of the next replay. For a paused webhook the answer is 409.

        Scope: admin.
        """
        return self._transport.call(
            Call("POST", "/v1/webhooks/{webhook_id}/replay", path={"webhook_id": webhook_id}, body={"from": from_, "to": to}, repeatable=False),
            models.WebhookReplay,
        )

    def list_deliveries(
        self,
        *,
        webhook_id: str,
        status: params.DeliveryStatus | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.DeliveryList:
        """The deliveries of a webhook and their results.

        Sorted by event, newest first. Deliveries are kept as long as events.

        Scope: admin.
        """
        return self._transport.call(
            Call("GET", "/v1/webhooks/{webhook_id}/deliveries", path={"webhook_id": webhook_id}, query={"status": status, "limit": limit, "cursor": cursor}),
            models.DeliveryList,
        )

    def all_deliveries(
        self,
        *,
        webhook_id: str,
        status: params.DeliveryStatus | None = None,
        limit: int | None = None,
    ) -> Iterator[models.Delivery]:
        """The deliveries of a webhook and their results. Asks for one page after the other; `limit` is the size of a page."""
        cursor: str | None = None
        while True:
            page = self.list_deliveries(webhook_id=webhook_id, status=status, limit=limit, cursor=cursor)
            for item in page.items:
                yield item
            if not page.next_cursor or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def get_test_clock(
        self,
    ) -> models.TestClock:
        """The ledger's time.

        In `quotasvc dev` only; 404 elsewhere.

        Scope: read.
        """
        return self._transport.call(
            Call("GET", "/v1/test/clock"),
            models.TestClock,
        )

    def advance_test_clock(
        self,
        *,
        advance: str,
        key: str | None = None,
    ) -> models.TestClock:
        """Move the ledger's time forward.

        In `quotasvc dev` only; 404 elsewhere. Periods close, trials and grants end, holds expire and idempotency keys are
        forgotten as if the time had passed. The time never goes back, not even at a restart. It can be at most 3653 days ahead in
        all. These stay on real time: rate limits, leases, callers' keys, overrides of limits, the audit log, seals and archives.

        Scope: admin. key: the Idempotency-Key; a new one if it is not given.
        """
        return self._transport.call(
            Call("POST", "/v1/test/clock", body={"advance": advance}, key=key or new_key()),
            models.TestClock,
        )
