"""The ASGI middleware and the dependency, with Debian's FastAPI and Starlette and a real service."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
from conftest import SDK, Service, make_tenant
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, StreamingResponse
from proxy import Fault, Proxy, problem

from quotasvc import AsyncQuota, Backoff, FailOpenEvent, Quota
from quotasvc._web import passage
from quotasvc.fastapi import QuotaMiddleware, consume

pytestmark = pytest.mark.feature("middleware")
FAST = Backoff(base=0.01, cap=0.05)


def example(name: str) -> ModuleType:
    """Imports a program of examples/."""
    spec = importlib.util.spec_from_file_location(name, SDK / "examples" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def make_app(client: AsyncQuota, **options: Any) -> FastAPI:
    app = FastAPI()
    app.add_middleware(QuotaMiddleware, client=client, **{"meter": "api_calls", "tenant": lambda r: r.headers["x-org"], **options})

    @app.get("/ok")
    async def ok() -> dict[str, bool]:
        return {"ok": True}

    @app.get("/sync")
    def sync() -> dict[str, bool]:
        return {"ok": True}

    @app.get("/raises")
    async def raises() -> None:
        raise RuntimeError("the handler failed")

    @app.get("/http-error/{status}")
    async def http_error(status: int) -> None:
        raise HTTPException(status)

    @app.get("/response/{status}")
    async def response(status: int) -> JSONResponse:
        return JSONResponse({}, status)

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            yield b"part"
            raise ConnectionError("the client went away")

        return StreamingResponse(parts())

    @app.get("/images", dependencies=[Depends(consume("tokens", amount=40))])
    async def images(fail: bool = False) -> dict[str, bool]:
        if fail:
            raise HTTPException(502)
        return {"ok": True}

    @app.get("/by-query", dependencies=[Depends(consume("tokens", amount=lambda r: int(r.query_params["n"])))])
    async def by_query() -> dict[str, bool]:
        return {"ok": True}

    @app.get("/own")
    async def own(request: Request) -> None:
        await client.consume(request.headers["x-other"], "api_calls", 1_000_000)

    return app


async def get(app: FastAPI, path: str, tenant: str | None, **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=("192.0.2.7", 123))
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
        return await client.get(path, headers={**({"x-org": tenant} if tenant else {}), **headers})


def state(quota: Quota, tenant: str, meter: str = "api_calls") -> tuple[int, int]:
    b = quota.balance(tenant, meter)
    return b.used, b.refunded


async def test_a_request_is_charged_and_its_client_sees_what_is_left(aquota: AsyncQuota, quota: Quota) -> None:
    tenant = make_tenant(quota, "small")
    app = make_app(aquota)
    for path, left in (("/ok", "4"), ("/sync", "3"), ("/response/404", "2")):
        response = await get(app, path, tenant)
        assert (response.headers["x-quota-remaining"], response.headers["x-quota-limit"]) == (left, "5")
        assert int(response.headers["x-quota-reset"]) > 0 and "retry-after" not in response.headers
    assert state(quota, tenant) == (3, 0)


async def test_a_denied_request_gets_the_services_answer(aquota: AsyncQuota, quota: Quota) -> None:
    tenant = make_tenant(quota, "small")
    quota.consume(tenant, "api_calls")
    response = await get(make_app(aquota, amount=5), "/ok", tenant)
    body = response.json()
    assert response.status_code == 429 and response.headers["content-type"] == "application/problem+json"
    assert (body["code"], body["status"], body["required"], body["available"]) == ("quota_exceeded", 429, 5, 4)
    assert int(response.headers["retry-after"]) > 0 and response.headers["x-quota-remaining"] == "4"
    assert "request_id" not in body and state(quota, tenant) == (1, 0)


async def test_limits_are_charged_by_path_and_handed_on(aquota: AsyncQuota, quota: Quota) -> None:
    tenant = make_tenant(quota, "limited")
    app = make_app(aquota)
    first = await get(app, "/ok", tenant)
    assert first.headers["ratelimit-policy"].startswith('"sdk";q=2') and first.headers["ratelimit"].startswith('"sdk";r=1')
    await get(app, "/ok", tenant)
    denied = await get(app, "/ok", tenant)
    assert denied.status_code == 429 and denied.json()["code"] == "rate_limited" and int(denied.headers["retry-after"]) >= 1


@pytest.mark.feature("refund")
@pytest.mark.parametrize(("path", "status"), [("/raises", 500), ("/http-error/502", 502), ("/response/503", 503)])
async def test_a_failed_handler_is_refunded(aquota: AsyncQuota, quota: Quota, tenant: str, path: str, status: int) -> None:
    response = await get(make_app(aquota), path, tenant)
    assert response.status_code == status and state(quota, tenant) == (1, 1)


@pytest.mark.feature("refund")
async def test_a_client_that_leaves_or_errs_is_not_refunded(aquota: AsyncQuota, quota: Quota, tenant: str) -> None:
    app = make_app(aquota)
    await get(app, "/http-error/404", tenant)
    try:
        await get(app, "/stream", tenant)
    except Exception:
        pass  # the response broke off
    assert state(quota, tenant) == (2, 0)


async def test_a_route_says_what_it_costs(aquota: AsyncQuota, quota: Quota, tenant: str) -> None:
    app = make_app(aquota)
    assert (await get(app, "/images", tenant)).status_code == 200
    assert (await get(app, "/by-query?n=7", tenant)).status_code == 200
    assert (await get(app, "/by-query?n=0", tenant)).status_code == 200
    assert state(quota, tenant, "tokens") == (47, 0) and state(quota, tenant) == (3, 0)


@pytest.mark.feature("refund")
async def test_all_of_a_failed_request_is_refunded(aquota: AsyncQuota, quota: Quota, tenant: str) -> None:
    assert (await get(make_app(aquota), "/images?fail=true", tenant)).status_code == 502
    assert state(quota, tenant, "tokens") == (40, 40) and state(quota, tenant) == (1, 1)
    response = await get(make_app(aquota), "/by-query?n=2000000", tenant)
    assert response.status_code == 402 and response.headers["x-quota-remaining"] == "1000000"
    assert state(quota, tenant) == (2, 2), "what was charged before the refusal goes back"


async def test_a_dependency_without_the_middleware_is_an_error(aquota: AsyncQuota) -> None:
    app = FastAPI()

    @app.get("/images", dependencies=[Depends(consume("tokens"))])
    async def images() -> None: ...

    with pytest.raises(RuntimeError, match="needs app.add_middleware"):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app") as client:
            await client.get("/images")


async def test_a_request_without_tenant_is_refused(aquota: AsyncQuota) -> None:
    response = await get(make_app(aquota), "/ok", None)
    assert response.status_code == 400 and response.json()["code"] == "tenant_missing"


async def test_an_unknown_tenant_is_forbidden(aquota: AsyncQuota) -> None:
    response = await get(make_app(aquota), "/ok", "nobody-knows-me")
    assert response.status_code == 403 and response.json()["code"] == "tenant_not_found"


async def test_exempt_requests_cost_nothing(aquota: AsyncQuota) -> None:
    assert (await get(make_app(aquota, exempt=lambda r: r.url.path == "/ok"), "/ok", None)).status_code == 200


async def test_without_a_meter_only_routes_are_charged(aquota: AsyncQuota, quota: Quota, tenant: str) -> None:
    app = make_app(aquota, meter=None)
    assert (await get(app, "/ok", None)).status_code == 200
    assert (await get(app, "/images", None)).json()["code"] == "tenant_missing"
    assert (await get(app, "/images", tenant)).status_code == 200
    assert state(quota, tenant, "tokens") == (40, 0) and state(quota, tenant) == (0, 0)


async def test_meter_may_be_a_function(aquota: AsyncQuota, quota: Quota, tenant: str) -> None:
    app = make_app(aquota, meter=lambda r: {"api_calls": 2, "tokens": 3} if r.url.path == "/ok" else None)
    await get(app, "/ok", tenant)
    await get(app, "/sync", tenant)
    assert state(quota, tenant) == (2, 0) and state(quota, tenant, "tokens") == (3, 0)


@pytest.mark.feature("fail-open")
async def test_a_dead_service_refuses_or_passes_by_meter(dead_url: str) -> None:
    events: list[FailOpenEvent] = []
    closed = await get(make_app(AsyncQuota(dead_url, "k", backoff=FAST)), "/ok", "acme")
    assert closed.status_code == 503 and closed.headers["retry-after"] == "1" and closed.json()["code"] == "unavailable"
    opened = AsyncQuota(dead_url, "k", backoff=FAST, fail_open={"api_calls"}, on_fail_open=events.append)
    response = await get(make_app(opened), "/ok", "acme")
    assert response.status_code == 200 and "x-quota-remaining" not in response.headers and len(events) == 1


@pytest.mark.feature("timeouts")
async def test_a_hanging_service_delays_a_request_by_the_deadline_at_most(service: Service, proxy: Proxy) -> None:
    proxy.down = Fault("hang")
    async with AsyncQuota(proxy.url, service.key, fail_open={"api_calls"}) as quota:
        response = await asyncio.wait_for(get(make_app(quota, deadline=0.5), "/ok", "acme"), 20)
    assert response.status_code == 200


async def test_denials_are_not_retried_and_503_is(service: Service, proxy: Proxy, tenant: str) -> None:
    async with AsyncQuota(proxy.url, service.key, backoff=FAST) as quota:
        proxy.faults.append(problem(429, "rate_limited", Retry_After="1"))
        assert (await get(make_app(quota), "/ok", tenant)).status_code == 429
        proxy.faults.append(problem(503, "queue_full"))
        assert (await get(make_app(quota), "/ok", tenant)).status_code == 200
    assert [s.path for s in proxy.seen] == ["/v1/consume"] * 3


@pytest.mark.feature("idempotency")
async def test_a_lost_answer_is_charged_once(service: Service, quota: Quota, proxy: Proxy, tenant: str) -> None:
    async with AsyncQuota(proxy.url, service.key, backoff=FAST) as client:
        proxy.faults.append(Fault("lose"))
        assert (await get(make_app(client, deadline=20), "/ok", tenant)).status_code == 200
    assert state(quota, tenant) == (1, 0)


@pytest.mark.feature("refund")
async def test_a_refusal_of_unknown_outcome_is_refunded(service: Service, quota: Quota, proxy: Proxy, tenant: str) -> None:
    async with AsyncQuota(proxy.url, service.key, backoff=FAST, attempts=1) as client:
        proxy.faults.append(Fault("lose"))
        assert (await get(make_app(client), "/ok", tenant)).status_code == 503
        assert state(quota, tenant) == (1, 1)
        proxy.faults.append(problem(503, "unavailable"))  # nothing was done, so nothing is refunded
        assert (await get(make_app(client), "/ok", tenant)).status_code == 503
    assert [s.path for s in proxy.seen] == ["/v1/consume", "/v1/refunds", "/v1/consume"]


async def test_a_fault_of_the_program_is_not_shown_to_its_client(service: Service, tenant: str) -> None:
    async with AsyncQuota(service.url, "qk_wrong") as client:
        response = await get(make_app(client), "/ok", tenant)
    assert response.status_code == 500 and b"qk_" not in response.content


async def test_the_handlers_own_denials_are_its_own(aquota: AsyncQuota, quota: Quota, tenant: str) -> None:
    other = make_tenant(quota, "small")
    response = await get(make_app(aquota.with_options(retry_denied=False)), "/own", tenant, **{"x-other": other})
    assert response.status_code == 500 and state(quota, tenant) == (1, 1)


@pytest.mark.parametrize("path", ["/straße/%00/%ff", "/" + "a" * 5000, "/a%20b%7F"])
async def test_a_strange_path_is_no_error(aquota: AsyncQuota, quota: Quota, path: str) -> None:
    tenant = make_tenant(quota, "limited")
    response = await get(make_app(aquota), path, tenant)
    assert response.status_code == 404 and response.headers["x-quota-remaining"] == "999"


@pytest.mark.parametrize("tenant", ["a b", ".x", "ä", "x" * 256, "a%b"])
async def test_a_tenant_that_is_no_id_is_refused(aquota: AsyncQuota, tenant: str) -> None:
    response = await get(make_app(aquota, tenant=lambda r: tenant), "/ok", None)
    assert response.status_code == 400 and response.json()["code"] == "tenant_missing"


def test_what_a_client_chooses_is_made_fit() -> None:
    made = passage("acme", None, "/a\u0000ü\udcff" + "b" * 500, "fe80::1%eth0", "get\n")
    assert made.route and len(made.route) == 256 and made.route.startswith("/a%00%C3%BC?b") and made.route.isascii()
    assert (made.ip, made.method) == ("fe80::1", None)
    assert passage("acme", None, None, "testclient", "delete").method == "DELETE"


async def test_websockets_and_lifespans_pass(aquota: AsyncQuota) -> None:
    seen: list[str] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    app = QuotaMiddleware(inner, client=aquota, meter="api_calls", tenant=lambda r: None)
    for kind in ("lifespan", "websocket"):
        await app({"type": kind}, None, None)  # type: ignore[arg-type]
    assert seen == ["lifespan", "websocket"]


async def test_the_example(service: Service, quota: Quota, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTASVC_URL", service.url)
    monkeypatch.setenv("QUOTASVC_KEY", service.key)
    app = example("fastapi_app").app
    tenant = make_tenant(quota, "small")
    assert [(await get(app, "/search", tenant)).status_code for _ in range(6)] == [200] * 5 + [429]
    assert (await get(app, "/healthz", None)).status_code == 200


@pytest.mark.feature("webhooks")
async def test_the_webhook_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import time

    from quotasvc import Webhook

    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    monkeypatch.setenv("QUOTASVC_WEBHOOK_SECRET", secret)
    app = example("webhook_app").app
    event = {"type": "balance.threshold_reached", "timestamp": "2026-11-25T01:00:00Z", "data": {"tenant": "acme", "threshold": 80}}
    raw, now = json.dumps(event).encode(), int(time.time())
    headers = {"webhook-id": "evt_1", "webhook-timestamp": str(now), "webhook-signature": Webhook(secret).sign("evt_1", now, raw)}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app") as client:
        answers = [(await client.post("/quotasvc", content=raw, headers=headers)).status_code for _ in range(2)]
        forged = await client.post("/quotasvc", content=raw + b" ", headers=headers)
    assert answers == [204, 204] and forged.status_code == 400
    assert capsys.readouterr().out.count("tell acme: 80 % used") == 1


def test_examples_exist() -> None:
    assert {p.stem for p in Path(SDK / "examples").glob("*.py")} >= {"fastapi_app", "django_app", "stream", "hot_path", "webhook_app"}
