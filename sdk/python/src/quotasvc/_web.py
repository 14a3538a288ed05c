"""What the middlewares share: what a request is charged, what its client sees, and when it is refunded. Knows no framework."""

from __future__ import annotations

import ipaddress
import json
import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

from quotasvc import errors
from quotasvc._call import new_key
from quotasvc._client import amounts

log = logging.getLogger("quotasvc")

R = TypeVar("R")

# Seconds that a request may wait for the decision. The service answers in milliseconds; a web client should not wait for its retries.
DEADLINE = 2.0

# The headers of the service that concern the client.
_HANDED_ON = frozenset(
    """x-quota-limit x-quota-remaining x-quota-reset ratelimit-policy ratelimit ratelimit-limit ratelimit-remaining ratelimit-reset
    x-ratelimit-limit x-ratelimit-remaining x-ratelimit-reset x-ratelimit-mode""".split()
)

# The members of a problem that concern the client.
_SHOWN = (
    "type", "title", "status", "detail", "code", "limiting", "required", "available", "reset_at", "would_succeed_at", "lacking",
    "violated-policies", "retry_after_ms",
)  # fmt: skip

# Refusals that say what the tenant may do. Others are faults of the program or its configuration, which its client cannot mend: they are
# raised.
_TENANTS = (errors.Denied, errors.TenantNotFound)


class NoTenant(errors.QuotaError):
    """The request names no tenant."""

    code = "tenant_missing"


@dataclass
class Refusal:
    """The response to a request that may not pass."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


@dataclass
class Charge:
    """An operation that was asked for on behalf of a request."""

    tenant: str
    key: str
    charged: bool = False  # answered with success
    unknown: bool = False  # it may have taken effect although it failed


@dataclass
class Passage:
    """One request on its way through the program: what it was charged, and the headers that its client gets."""

    tenant: str
    subject: str | None
    route: str | None
    ip: str | None
    method: str | None
    charges: list[Charge] = field(default_factory=list)
    headers: list[tuple[str, str]] = field(default_factory=list)
    refusal: errors.QuotaError | None = None

    def begin(self) -> Charge:
        """Begins an operation, with a key of its own: each request is one."""
        charge = Charge(self.tenant, new_key())
        self.charges.append(charge)
        return charge

    def done(self, charge: Charge, headers: Mapping[str, str], failed_open: bool) -> None:
        """Notes that the operation was done."""
        charge.charged = not failed_open
        if not failed_open:
            self.headers = handed_on(headers)

    def failed(self, charge: Charge, error: errors.QuotaError) -> None:
        """Notes that the operation was refused."""
        charge.unknown = error.outcome_unknown
        self.refusal = error
        if error.status:
            self.headers = handed_on(error.meta.headers)

    def to_refund(self, status: int) -> Iterable[Charge]:
        """Returns the operations to refund after a response of this status: all if the work failed, or was not begun."""
        if status >= 500 or self.refusal is not None:
            return [c for c in self.charges if c.charged or c.unknown]
        return []


def handed_on(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns the service's headers for the client."""
    return [(name, value) for name, value in headers.items() if name.lower() in _HANDED_ON]


def refuse(error: errors.QuotaError) -> Refusal | None:
    """Returns the response for an error; None: it is a fault of the program, to be raised."""
    headers = handed_on(error.meta.headers) if error.status else []
    status = error.status
    if isinstance(error, NoTenant):
        status = 400
    elif isinstance(error, errors.Undecided):
        status = 503
    elif isinstance(error, errors.TenantNotFound):
        status = 403  # 404 would say that the client's resource does not exist
    elif not isinstance(error, _TENANTS):
        return None
    after = error.retry_after if status in (429, 503) else 0
    if status == 503:
        after = max(after, 1.0)
    if after:
        headers.append(("Retry-After", str(math.ceil(after))))
    problem = {name: error.problem[name] for name in _SHOWN if name in error.problem}
    if isinstance(error, errors.Undecided):
        problem = {"type": "about:blank", "title": "Service unavailable", "detail": "the quota could not be decided now", "code": "unavailable"}
    title = "No tenant" if isinstance(error, NoTenant) else "Not allowed"
    problem = {"type": "about:blank", "title": title, "detail": error.detail, "code": error.code, **problem, "status": status}
    headers += [("Content-Type", "application/problem+json"), ("Cache-Control", "no-store")]
    return Refusal(status, headers, json.dumps(problem).encode())


_ID = re.compile(r"""(?!\.)[!$&-;=@-\[\]-~]{1,255}""")
_METHOD = re.compile(r"[A-Z][A-Z-]{0,31}")
_MAX_ROUTE = 256
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))


def passage(tenant: str, subject: str | None, route: str | None, ip: str | None, method: str | None) -> Passage:
    """Returns the passage of a request. Clients choose their path and method, so what the service does not take is made fit or left out:
    a strange request must not become an error of the program."""
    try:
        ip = str(ipaddress.ip_address((ip or "").partition("%")[0]))
    except ValueError:
        ip = None  # a socket of the system, a test client
    route = quote(route, safe=_PRINTABLE, errors="replace")[:_MAX_ROUTE] if route else None
    method = (method or "").upper()
    return Passage(tenant, subject, route, ip, method if _METHOD.fullmatch(method) else None)


def tenant_of(find: Callable[[R], str | None], request: R) -> str:
    """Returns the tenant of a request. A look-up that finds nothing is a request without tenant, not a fault."""
    try:
        tenant = find(request)
    except LookupError:
        tenant = None
    if not tenant or not _ID.fullmatch(tenant):
        raise NoTenant("the request names no tenant")
    return tenant


def items_of(meter: Any, amount: Any, request: Any) -> Mapping[str, int]:
    """Returns what a request is to be charged. Empty: nothing."""
    if callable(meter):
        meter = meter(request)
    if callable(amount):
        amount = amount(request)
    if not meter:
        return {}
    items = amounts(meter, amount) if isinstance(meter, str) else amounts(meter, 1)
    return {name: units for name, units in items.items() if units}
