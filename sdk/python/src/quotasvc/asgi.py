"""Middleware for Starlette, FastAPI and other ASGI frameworks.

    app.add_middleware(QuotaMiddleware, client=quota, meter="api_calls", tenant=lambda request: request.user.org)

Without `meter` it charges nothing by itself, and routes say what they cost: see quotasvc.fastapi.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from quotasvc import errors
from quotasvc._client_async import AsyncQuota
from quotasvc._finish import finish
from quotasvc._web import DEADLINE, Passage, items_of, passage, refuse, tenant_of

log = logging.getLogger("quotasvc")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

STATE = "quotasvc"  # the key of a request's state in its scope


class QuotaMiddleware:
    """Charges each request before it is handled, tells its client what is left, and refunds what a failed handler was charged for.

    A request that the service denies gets its status, its problem and Retry-After. If the service cannot decide, the request gets 503, or
    passes if all its meters are in `fail_open` of the client. A request without tenant gets 400.
    """

    def __init__(
        self,
        app: App,
        *,
        client: AsyncQuota,
        tenant: Callable[[Any], str | None],
        meter: str | Callable[[Any], str | Mapping[str, int] | None] | None = None,
        amount: int | Callable[[Any], int] = 1,
        subject: Callable[[Any], str | None] | None = None,
        route: Callable[[Any], str | None] | None = None,
        exempt: Callable[[Any], bool] | None = None,
        deadline: float = DEADLINE,
    ) -> None:
        """tenant: who pays. Take it from what your authentication has proved; a header that clients choose lets them choose who pays.
        meter, amount: what each request costs; functions of the request may decide. None or 0: nothing.
        subject: whose cap and limits count. route: for limits per route; by default the path.
        exempt: requests that need no tenant and cost nothing, such as health checks.
        deadline: seconds that a request may wait for the decision, retries included.
        """
        self.app = app
        self.client = client.with_options(deadline=deadline, retry_denied=False)
        self.settler = client.with_options(retry_denied=False)  # nobody waits for refunds
        self.tenant, self.meter, self.amount, self.subject = tenant, meter, amount, subject
        self.route: Callable[[Any], str | None] = route or _path
        self.exempt = exempt

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = _request(scope)
        if self.exempt is not None and self.exempt(request):
            await self.app(scope, receive, send)
            return
        state = RequestQuota(self, scope)
        scope[STATE] = state
        await state.run(request, receive, send)


class RequestQuota:
    """The quota of one request. A handler finds it as request.scope["quotasvc"]."""

    def __init__(self, owner: QuotaMiddleware, scope: Scope) -> None:
        self._owner, self._scope = owner, scope
        self._passage: Passage | None = None
        self._status = 0  # of the response that has begun

    async def run(self, request: Any, receive: Receive, send: Send) -> None:
        """Charges, handles and settles the request."""
        owner = self._owner

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._status = message["status"]
                self._add_headers(message)
            await send(message)

        try:
            items = items_of(owner.meter, owner.amount, request) if owner.meter is not None else {}
            if items:
                await self.consume(items, request)
            await owner.app(self._scope, receive, send_with_headers)
        except errors.QuotaError as error:
            refusal = None if self._status or not self._owns(error) else refuse(error)
            if refusal is None:
                self._status = self._status or 500
                raise
            self._status = refusal.status
            fields = [(name.lower().encode(), value.encode()) for name, value in refusal.headers]
            fields.append((b"content-length", str(len(refusal.body)).encode()))
            await send({"type": "http.response.start", "status": refusal.status, "headers": fields})
            await send({"type": "http.response.body", "body": refusal.body})
        except Exception:
            self._status = self._status or 500
            raise
        finally:
            await finish(self._settle())

    async def consume(self, items: Mapping[str, int], request: Any) -> None:
        """Charges the request. A refusal raises; the middleware answers it. What is charged is refunded if the request fails."""
        owner = self._owner
        if self._passage is None:
            client = self._scope.get("client")
            try:
                tenant = tenant_of(owner.tenant, request)
            except errors.QuotaError as error:
                self._missing = error
                raise
            subject = owner.subject(request) if owner.subject else None
            self._passage = passage(tenant, subject, owner.route(request), client[0] if client else None, self._scope.get("method"))
        own = self._passage
        charge = own.begin()
        try:
            answer = await owner.client.consume(
                own.tenant, items, key=charge.key, subject=own.subject, route=own.route, ip=own.ip, method=own.method
            )
        except errors.QuotaError as error:
            own.failed(charge, error)
            raise
        own.done(charge, answer.meta.headers, answer.failed_open)

    _missing: errors.QuotaError | None = None

    def _owns(self, error: errors.QuotaError) -> bool:
        """Reports whether the error is about this request's charges, not from a call that the handler made for its own purposes."""
        return error is self._missing or self._passage is not None and error is self._passage.refusal

    def _add_headers(self, message: Message) -> None:
        """Adds the service's headers to a response that does not have them."""
        if self._passage is None:
            return
        fields = list(message.get("headers", []))
        have = {name.lower() for name, _ in fields}
        extra = [(name.lower().encode(), value.encode()) for name, value in self._passage.headers]
        message["headers"] = fields + [(name, value) for name, value in extra if name not in have]

    async def _settle(self) -> None:
        """Refunds what a failed request was charged. The response is out already."""
        if self._passage is None:
            return
        for charge in self._passage.to_refund(self._status):
            await self._owner.settler.refund_failed(charge.tenant, charge.key)


def _path(request: Any) -> str | None:
    return str(request.url.path)


def _request(scope: Scope) -> Any:
    """Returns Starlette's request."""
    from starlette.requests import Request

    return Request(scope)


__all__ = ["QuotaMiddleware", "RequestQuota"]
