"""Django's middleware and decorator, with Debian's Django and a real service."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import django
import pytest
from conftest import SDK, Service, make_tenant
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import Client, override_settings
from django.urls import path
from proxy import Fault, Proxy

from quotasvc import Backoff, FailOpenEvent, Quota

if not settings.configured:
    settings.configure(SECRET_KEY="test", ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], MIDDLEWARE=["quotasvc.django.QuotaMiddleware"])
    django.setup()

from quotasvc.django import QuotaMiddleware, consume  # noqa: E402

pytestmark = pytest.mark.feature("middleware")
FAST = Backoff(base=0.01, cap=0.05)


def ok(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"ok": True})


def raises(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("the view failed")


def status(request: HttpRequest, number: int) -> HttpResponse:
    return HttpResponse(status=number)


@consume("tokens", amount=40)
def images(request: HttpRequest) -> HttpResponse:
    return HttpResponse(status=502 if request.GET.get("fail") else 200)


urlpatterns = [path("ok", ok), path("raises", raises), path("status/<int:number>", status), path("images", images)]


@pytest.fixture
def options(quota: Quota) -> Iterator[dict[str, Any]]:
    """The settings of a test; it may change them before its first request."""
    options: dict[str, Any] = {"client": quota, "meter": "api_calls", "tenant": lambda request: request.headers["x-org"]}
    with override_settings(QUOTASVC=options):
        yield options


def get(url: str, tenant: str | None) -> Any:
    client = Client(raise_request_exception=False)
    return client.get(url, **({"HTTP_X_ORG": tenant} if tenant else {}))


def state(quota: Quota, tenant: str, meter: str = "api_calls") -> tuple[int, int]:
    b = quota.balance(tenant, meter)
    return b.used, b.refunded


def test_requests_are_charged_and_denied(options: dict[str, Any], quota: Quota) -> None:
    tenant = make_tenant(quota, "small")
    responses = [get("/ok", tenant) for _ in range(6)]
    assert [r.status_code for r in responses] == [200] * 5 + [429]
    assert responses[0].headers["X-Quota-Remaining"] == "4"
    denied = responses[5]
    assert denied.json()["code"] == "quota_exceeded" and denied.headers["Content-Type"] == "application/problem+json"
    assert int(denied.headers["Retry-After"]) > 0 and denied.headers["X-Quota-Remaining"] == "0"


def test_limits_are_handed_on(options: dict[str, Any], quota: Quota) -> None:
    tenant = make_tenant(quota, "limited")
    responses = [get("/ok", tenant) for _ in range(3)]
    assert responses[0].headers["RateLimit-Policy"].startswith('"sdk";q=2') and responses[2].status_code == 429
    assert responses[2].json()["violated-policies"] == ["sdk"]


@pytest.mark.feature("refund")
def test_failed_views_are_refunded_and_others_not(options: dict[str, Any], quota: Quota, tenant: str) -> None:
    assert get("/raises", tenant).status_code == 500 and state(quota, tenant) == (1, 1)
    assert get("/status/503", tenant).status_code == 503 and state(quota, tenant) == (2, 2)
    assert get("/status/404", tenant).status_code == 404 and state(quota, tenant) == (3, 2)


@pytest.mark.feature("refund")
def test_a_view_says_what_it_costs(options: dict[str, Any], quota: Quota, tenant: str) -> None:
    assert get("/images", tenant).status_code == 200
    assert get("/images?fail=1", tenant).status_code == 502
    assert state(quota, tenant, "tokens") == (80, 40) and state(quota, tenant) == (2, 1)
    small = make_tenant(quota, "small")
    denied = get("/images", small)
    assert denied.status_code == 403 and denied.json()["code"] == "meter_not_in_plan" and state(quota, small) == (1, 1)


def test_tenants_are_required_except_for_exempt_paths(options: dict[str, Any]) -> None:
    options["exempt"] = lambda request: request.path == "/ok"
    assert get("/ok", None).status_code == 200
    refused = get("/status/200", None)
    assert refused.status_code == 400 and refused.json()["code"] == "tenant_missing"
    assert get("/status/200", "nobody-knows-me").status_code == 403


@pytest.mark.feature("fail-open")
def test_a_dead_service_refuses_or_passes_by_meter(options: dict[str, Any], dead_url: str) -> None:
    options["client"] = Quota(dead_url, "k", backoff=FAST)
    closed = get("/ok", "acme")
    assert closed.status_code == 503 and closed.headers["Retry-After"] == "1"
    events: list[FailOpenEvent] = []
    options["client"] = Quota(dead_url, "k", backoff=FAST, fail_open={"api_calls"}, on_fail_open=events.append)
    assert get("/ok", "acme").status_code == 200 and len(events) == 1


@pytest.mark.feature("refund")
def test_a_refusal_of_unknown_outcome_is_refunded(options: dict[str, Any], service: Service, quota: Quota, proxy: Proxy, tenant: str) -> None:
    options["client"] = Quota(proxy.url, service.key, attempts=1)
    proxy.faults.append(Fault("lose"))
    assert get("/ok", tenant).status_code == 503 and state(quota, tenant) == (1, 1)


def test_the_environment_makes_the_client(options: dict[str, Any], service: Service, tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTASVC_URL", service.url)
    monkeypatch.setenv("QUOTASVC_KEY", service.key)
    del options["client"]
    options["fail_open"] = {"api_calls"}
    assert get("/ok", tenant).headers["X-Quota-Limit"] == "1000000"


def test_wrong_settings_are_named() -> None:
    with override_settings(QUOTASVC={}), pytest.raises(ImproperlyConfigured, match="'tenant'"):
        QuotaMiddleware(ok)
    with override_settings(QUOTASVC={"tenant": str, "metre": "x"}), pytest.raises(ImproperlyConfigured, match="no setting metre"):
        QuotaMiddleware(ok)
    with pytest.raises(ImproperlyConfigured, match="needs quotasvc.django.QuotaMiddleware"):
        images(HttpRequest())


def test_the_example(service: Service, quota: Quota) -> None:
    tenant = make_tenant(quota, "small")
    program = (
        "import django_app; from django.test import Client; c = Client();"
        f"print([c.get('/search', HTTP_X_ORG='{tenant}').status_code for _ in range(6)], c.get('/healthz').status_code)"
    )
    paths = os.pathsep.join([str(SDK / "src"), str(SDK / "examples")])
    environment = {**os.environ, "PYTHONPATH": paths, "QUOTASVC_URL": service.url, "QUOTASVC_KEY": service.key}
    out = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert out.stdout.strip() == "[200, 200, 200, 200, 200, 429] 200", out.stderr
