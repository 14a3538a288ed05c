"""FastAPI: the middleware, and a dependency that says what a route costs.

    app.add_middleware(QuotaMiddleware, client=quota, tenant=lambda request: request.user.org)

    @app.post("/images", dependencies=[Depends(consume("images", amount=4))])
    async def images(): ...

The dependency needs the middleware: that one answers refusals, hands headers on and refunds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request

from quotasvc._web import items_of
from quotasvc.asgi import STATE, QuotaMiddleware, RequestQuota


def consume(
    meter: str | Mapping[str, int] | Callable[[Any], str | Mapping[str, int] | None], amount: int | Callable[[Any], int] = 1
) -> Callable[[Request], Awaitable[None]]:
    """Returns a dependency that charges the route's requests. meter and amount may be functions of the request."""

    async def charge(request: Request) -> None:
        state = request.scope.get(STATE)
        if not isinstance(state, RequestQuota):
            raise RuntimeError("consume() needs app.add_middleware(QuotaMiddleware, ...), and no exemption of this path")
        items = items_of(meter, amount, request)
        if items:
            await state.consume(items, request)

    return charge


__all__ = ["QuotaMiddleware", "consume"]
