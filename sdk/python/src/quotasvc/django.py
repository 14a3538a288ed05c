"""Django: the middleware, and a decorator that says what a view costs.

    MIDDLEWARE = [..., "django.contrib.auth.middleware.AuthenticationMiddleware", "quotasvc.django.QuotaMiddleware"]
    QUOTASVC = {"meter": "api_calls", "tenant": lambda request: request.user.profile.org}

Settings in QUOTASVC: `tenant` (required), `meter`, `amount`, `subject`, `route`, `exempt`, `deadline` as for quotasvc.asgi.QuotaMiddleware;
`client` is a Quota (by default one with QUOTASVC_URL and QUOTASVC_KEY from the environment), `fail_open` and `on_fail_open` are its options if
there is no client. The middleware handles requests in threads; under ASGI Django calls it in one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from quotasvc import errors
from quotasvc._client import Quota
from quotasvc._web import DEADLINE, Passage, items_of, passage, refuse, tenant_of

_STATE = "_quotasvc"

_OPTIONS = {"client", "tenant", "meter", "amount", "subject", "route", "exempt", "deadline", "fail_open", "on_fail_open"}


class QuotaMiddleware:
    """Charges each request before its view, tells its client what is left, and refunds what a failed view was charged for."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        options: dict[str, Any] = dict(getattr(settings, "QUOTASVC", None) or {})
        if unknown := set(options) - _OPTIONS:
            raise ImproperlyConfigured(f"QUOTASVC has no setting {', '.join(sorted(unknown))}")
        if not callable(options.get("tenant")):
            raise ImproperlyConfigured("QUOTASVC['tenant'] is required: a function that returns the tenant of a request")
        client = options.get("client") or Quota(fail_open=options.get("fail_open", ()), on_fail_open=options.get("on_fail_open"))
        self.client = client.with_options(deadline=options.get("deadline", DEADLINE), retry_denied=False)
        self.settler = self.client  # the response waits for refunds: no longer than for the decision
        self.tenant = options["tenant"]
        self.meter, self.amount = options.get("meter"), options.get("amount", 1)
        self.subject, self.exempt = options.get("subject"), options.get("exempt")
        self.route = options.get("route") or (lambda request: request.path)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Handles one request."""
        if self.exempt is not None and self.exempt(request):
            return self.get_response(request)
        state = _RequestQuota(self, request)
        setattr(request, _STATE, state)
        return state.run()

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answers a refusal that the decorator raised."""
        state = getattr(request, _STATE, None)
        if isinstance(state, _RequestQuota) and isinstance(exception, errors.QuotaError):
            return state.refused(exception)
        return None


class _RequestQuota:
    def __init__(self, owner: QuotaMiddleware, request: HttpRequest) -> None:
        self.owner, self.request = owner, request
        self.passage: Passage | None = None
        self.missing: errors.QuotaError | None = None

    def run(self) -> HttpResponseBase:
        owner = self.owner
        status = 500
        try:
            try:
                items = items_of(owner.meter, owner.amount, self.request) if owner.meter is not None else {}
                if items:
                    self.consume(items)
                response = owner.get_response(self.request)
            except errors.QuotaError as error:
                refused = self.refused(error)
                if refused is None:
                    raise
                response = refused
            status = response.status_code
            if self.passage is not None:
                for name, value in self.passage.headers:
                    response.headers.setdefault(name, value)
            return response
        finally:
            if self.passage is not None:
                for charge in self.passage.to_refund(status):
                    owner.settler.refund_failed(charge.tenant, charge.key)

    def consume(self, items: Mapping[str, int]) -> None:
        owner, request = self.owner, self.request
        if self.passage is None:
            try:
                tenant = tenant_of(owner.tenant, request)
            except errors.QuotaError as error:
                self.missing = error
                raise
            subject = owner.subject(request) if owner.subject else None
            self.passage = passage(tenant, subject, owner.route(request), request.META.get("REMOTE_ADDR"), request.method)
        own = self.passage
        charge = own.begin()
        try:
            answer = owner.client.consume(
                own.tenant, items, key=charge.key, subject=own.subject, route=own.route, ip=own.ip, method=own.method
            )
        except errors.QuotaError as error:
            own.failed(charge, error)
            raise
        own.done(charge, answer.meta.headers, answer.failed_open)

    def refused(self, error: errors.QuotaError) -> HttpResponse | None:
        """Returns the response to a refusal of this request's charges; None if the error is from another call or a fault of the program."""
        own = error is self.missing or self.passage is not None and error is self.passage.refusal
        refusal = refuse(error) if own else None
        if refusal is None:
            return None
        response = HttpResponse(refusal.body, status=refusal.status)
        for name, value in refusal.headers:
            response[name] = value
        return response


def consume(
    meter: str | Mapping[str, int] | Callable[[HttpRequest], Any], amount: int | Callable[[HttpRequest], int] = 1
) -> Callable[[Callable[..., HttpResponseBase]], Callable[..., HttpResponseBase]]:
    """Returns a decorator that charges a view's requests. It needs the middleware, which answers refusals and refunds."""

    def decorate(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        @functools.wraps(view)
        def charged(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            state = getattr(request, _STATE, None)
            if not isinstance(state, _RequestQuota):
                raise ImproperlyConfigured("consume() needs quotasvc.django.QuotaMiddleware, and no exemption of this path")
            items = items_of(meter, amount, request)
            if items:
                state.consume(items)
            return view(request, *args, **kwargs)

        return charged

    return decorate
