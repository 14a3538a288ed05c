"""The SDK and the contract agree. ContractTransport holds every request and answer of the tests to openapi.yaml."""

from __future__ import annotations

import inspect
import re
import uuid
from datetime import datetime, timedelta, timezone

import generate
import pytest
from conftest import ROOT, SDK, Service, eventually
from contract import document

from quotasvc import Api, AsyncApi, Quota, errors
from quotasvc._decode import Meta, decode
from quotasvc.models import CheckAnswer, CheckBatchAnswer, Problem


def operations() -> set[str]:
    found = [o for item in document()["paths"].values() for o in item.values() if isinstance(o, dict) and "operationId" in o]
    return {o["operationId"] for o in found} - generate.LEFT_OUT


def test_generated_modules_are_up_to_date() -> None:
    stale = [path.name for path, text in generate.generate().items() if path.read_text() != text]
    assert not stale, f"run `make generate-sdk-python`: {', '.join(stale)}"


def test_every_operation_has_a_method() -> None:
    for api in (Api, AsyncApi):
        methods = {name for name, _ in inspect.getmembers(api, inspect.isfunction)}
        assert {generate.snake(o) for o in operations()} <= methods


@pytest.mark.feature("typed-errors")
def test_every_code_has_a_class() -> None:
    described = re.findall(r"(?m)^## (\w+)$", (ROOT / "docs" / "api.md").read_text().split("\n# Errors\n")[1])
    problem = document()["components"]["schemas"]["Problem"]["properties"]["code"]
    codes = set(described) | set(generate.Generator(document()).resolve(problem).get("enum", []))
    assert len(codes) > 25 and codes <= set(errors.BY_CODE), f"add to errors.py: {sorted(codes - set(errors.BY_CODE))}"
    for code, cls in errors.BY_CODE.items():
        assert cls.code in (code, ""), code


def test_answers_of_other_versions_are_understood() -> None:
    answer = decode(CheckAnswer, b'{"allowed":true,"items":[],"limits":[],"new":{"a":1}}', Meta(200))
    assert answer.allowed and answer.as_of is None and not answer.failed_open
    for wrong in (b"", b"[]", b"null", b'{"items":[1]}', b'{"as_of":"soon"}'):
        with pytest.raises(ValueError):
            decode(CheckAnswer, wrong, Meta(200))


def test_a_result_is_an_answer_or_a_problem(quota: Quota, tenant: str) -> None:
    items = [{"meter": "api_calls", "amount": 1}]
    answer = quota.api.check_batch(checks=[{"tenant": tenant, "items": items}, {"tenant": "nobody", "items": items}])  # type: ignore[typeddict-item, list-item]
    assert isinstance(answer, CheckBatchAnswer)
    good, bad = answer.results
    assert isinstance(good, CheckAnswer) and good.allowed
    assert isinstance(bad, Problem) and bad.code == "tenant_not_found" and bad.violated_policies is None


def lease_or_none(quota: Quota, rule: str, tenant: str) -> str | None:
    try:
        return quota.api.acquire_lease(rule=rule, tenant=tenant, ttl_seconds=30).lease_id
    except errors.NotFound:
        return None


def tour_of_gauges(api: Api, tenant: str, gauge: str, plan: str) -> None:
    """Gauges, features, and the catalogue as one document."""
    api.put_meter(meter=gauge, unit="seat", kind="gauge")
    allowances = [{"meter": a.meter, "amount": a.amount, "every": a.every, "anchor": a.anchor} for a in api.get_plan(plan=plan).allowances]
    api.put_plan(plan=plan, allowances=[*allowances, {"meter": gauge, "amount": 5}], features={"sso": True}, apply="now")  # type: ignore[list-item]
    assert api.set_gauge(tenant=tenant, meter=gauge, value=3).value == 3
    assert api.get_gauge(tenant=tenant, meter=gauge).value == 3
    assert [e.after for e in api.all_gauge_entries(tenant=tenant, meter=gauge)] == [3]
    eventually(lambda: bool(api.get_features(tenant=tenant).features))  # known within a second
    document = api.export_catalog()
    assert document.meters and api.apply_catalog(meters={gauge: {"unit": "seat", "kind": "gauge"}}, dry_run=True)


def tour_of_webhooks(api: Api, tenant: str) -> None:
    """Webhooks. Nobody listens at the address: deliveries fail, and their list says so."""
    hook = api.create_webhook(url="https://192.0.2.1/hook", types=["grant.created"], tenant=tenant)
    assert hook.secret and api.get_webhook(webhook_id=hook.webhook_id).url == hook.url
    assert hook.webhook_id in {w.webhook_id for w in api.all_webhooks()}
    assert api.patch_webhook(webhook_id=hook.webhook_id, status="paused").status == "paused"
    assert api.rotate_webhook(webhook_id=hook.webhook_id).secret != hook.secret
    api.patch_webhook(webhook_id=hook.webhook_id, status="active")
    api.test_webhook(webhook_id=hook.webhook_id)
    now = datetime.now(timezone.utc)
    api.replay_webhook(webhook_id=hook.webhook_id, from_=now - timedelta(hours=1), to=now)
    list(api.all_deliveries(webhook_id=hook.webhook_id))
    api.delete_webhook(webhook_id=hook.webhook_id)


def test_every_operation_works(service: Service) -> None:
    """Calls each operation of the contract once; ContractTransport checks what is sent and what comes back."""
    quota = service.quota()
    api, run = quota.api, uuid.uuid4().hex[:8]
    service.transport.used.clear()
    tenant, meter, plan, rule = f"tour-{run}", f"tour-{run}", f"tour-{run}", f"tour-{run}"
    now = datetime.now(timezone.utc)

    api.put_meter(meter=meter, unit="call", description="for a tour")
    api.put_meter(meter=f"unused-{run}", unit="call")
    api.delete_meter(meter=f"unused-{run}")
    assert api.get_meter(meter=meter).unit == "call"
    assert meter in {m.meter for m in api.all_meters(limit=500)}
    api.put_plan(plan=plan, allowances=[{"meter": meter, "amount": 1000, "every": "month", "anchor": "calendar", "rollover": {"max": 5}}])
    assert api.get_plan(plan=plan).allowances[0].rollover
    assert plan in {p.plan for p in api.all_plans()}
    version = api.put_tenant(tenant=tenant, plan=plan, metadata={"region": "eu"}).version
    api.patch_tenant(tenant=tenant, overrides={meter: 900}, apply="now", reason="a tour", if_match=f'"{version}"')
    assert api.get_tenant(tenant=tenant).overrides == {meter: 900}
    waits = api.patch_tenant(tenant=tenant, overrides={meter: 800}).pending
    assert waits and waits.overrides == {meter: 800}
    api.delete_pending(tenant=tenant)
    assert tenant in {t.tenant for t in api.all_tenants(limit=500)}
    assert tenant in {t.tenant for t in api.all_tenants(metadata={"region": "eu"}, plan=plan)}
    assert not list(api.all_tenants(metadata={"region": "us"}, plan=plan))
    assert not list(api.all_gauges(tenant=tenant))
    assert len(list(api.all_terms(tenant=tenant))) == 2

    api.put_limit(rule=rule, per=["tenant", "subject"], kind="token_bucket", rate="1000/s", ban={"after": 1000, "within": "1m", "for": "1m"})
    assert api.get_limit(rule=rule, explain="1").explain
    assert rule in {r.rule for r in api.all_limits(limit=500)}
    api.put_limit_override(rule=rule, tenant=tenant, rate="2000/s")
    api.put_subject_limit_override(rule=rule, tenant=tenant, subject="user-1", rate="3000/s")
    assert api.get_limit_override(rule=rule, tenant=tenant).rate and api.get_subject_limit_override(rule=rule, tenant=tenant, subject="user-1").rate
    assert len(list(api.all_limit_overrides(rule=rule))) == 2
    items = [{"meter": meter, "amount": 5}]
    eventually(lambda: bool(api.check(tenant=tenant, items=items, subject="user-1").limits))  # type: ignore[arg-type] # known within a second
    assert api.check_batch(checks=[{"tenant": tenant, "items": items}]).results  # type: ignore[typeddict-item, list-item]
    key = f"tour-{run}"
    assert api.consume(tenant=tenant, items=items, subject="user-1", key=key).limits  # type: ignore[arg-type]
    assert api.debit(tenant=tenant, items=items, mode="drain").items[0].charged == 5  # type: ignore[arg-type]
    batch = api.debit_batch(debits=[{"idempotency_key": f"batch-{run}", "tenant": tenant, "items": items}])  # type: ignore[typeddict-item, list-item]
    assert batch.results[0].status == 200
    charge = api.charge_limits(tenant=tenant, subject="user-1", rules=[rule])
    assert charge.charge_id and api.settle_charge(charge_id=charge.charge_id, cost=2).settled
    assert not api.refund_charge(charge_id=charge.charge_id).refunded
    assert api.get_limit_state(rule=rule, tenant=tenant, subject="user-1").limit
    api.get_limit_top(rule=rule)
    assert api.get_limit_shadow(rule=rule).rule == rule
    api.reset_limit(rule=rule, tenant=tenant, subject="user-1")
    api.delete_subject_limit_override(rule=rule, tenant=tenant, subject="user-1")
    api.delete_limit_override(rule=rule, tenant=tenant)
    api.delete_limit(rule=rule)
    api.put_limit(rule=f"jobs-{run}", per=["tenant"], kind="concurrency", burst=2)
    eventually(lambda: bool(lease_or_none(service.quota(), f"jobs-{run}", tenant)))  # the service reads its catalogue again in the background
    lease = lease_or_none(quota, f"jobs-{run}", tenant)
    assert lease and api.renew_lease(lease_id=lease, ttl_seconds=30).lease_id
    api.release_lease(lease_id=lease)
    api.delete_limit(rule=f"jobs-{run}")

    clock = api.get_test_clock()
    assert api.advance_test_clock(advance="1s").offset_seconds == clock.offset_seconds + 1

    api.hold(tenant=tenant, hold_id=f"h1-{run}", items=items, ttl_seconds=60)  # type: ignore[arg-type]
    api.extend_hold(hold_id=f"h1-{run}", tenant=tenant, ttl_seconds=90)
    api.capture_hold(hold_id=f"h1-{run}", tenant=tenant, final=True)
    api.hold(tenant=tenant, hold_id=f"h2-{run}", items=items)  # type: ignore[arg-type]
    api.release_hold(hold_id=f"h2-{run}", tenant=tenant)
    assert api.get_hold(tenant=tenant, hold_id=f"h2-{run}").status == "released" and len(list(api.all_holds(tenant=tenant))) == 2
    assert api.refund(tenant=tenant, operation_id=key, amount=2).items[0].refunded == 2
    assert api.get_operation(tenant=tenant, operation_id=key).entries
    api.grant(tenant=tenant, meter=meter, amount=50, source="topup", grant_id=f"g-{run}", expires_at=now + timedelta(days=9))
    assert f"g-{run}" in {g.grant_id for g in api.all_grants(tenant=tenant)}
    assert api.extend_grant(tenant=tenant, grant_id=f"g-{run}", expires_at=now + timedelta(days=19), reason="a tour").expires_at == now + timedelta(days=19)
    api.void_grant(tenant=tenant, grant_id=f"g-{run}", reason="a tour")
    assert api.adjust(tenant=tenant, meter=meter, amount=-1, reason="a tour").amount == -1
    assert api.get_balance(tenant=tenant, meter=meter).used and len(api.list_balances(tenant=tenant).items) == 1
    assert list(api.all_entries(tenant=tenant, order="desc", from_=now - timedelta(hours=1)))
    assert len(api.list_periods(tenant=tenant, meter=meter, next=3).items) == 3
    assert list(api.all_statements(tenant=tenant, meter=meter)) and api.get_statement(tenant=tenant, meter=meter, period_start="current").lines
    assert api.list_usage(tenant=tenant, meter=meter, from_=now - timedelta(hours=1), to=now + timedelta(hours=1), by="hour").items

    api.put_block(kind="subject", value="bot-7", tenant=tenant, reason="a tour")
    assert api.get_block(kind="subject", value="bot-7", tenant=tenant).reason
    assert list(api.all_blocks())
    api.delete_block(kind="subject", value="bot-7", tenant=tenant)
    api.put_block_prefix(kind="ip", value="192.0.2.0", bits=28, reason="a tour")
    assert api.get_block_prefix(kind="ip", value="192.0.2.0", bits=28).reason
    api.delete_block_prefix(kind="ip", value="192.0.2.0", bits=28)

    new = api.create_key(name="tour", scopes=["use"], tenant=tenant, expires_at=now + timedelta(days=1))
    assert api.get_key(key_id=new.key_id).status == "active" and new.key_id in {k.key_id for k in api.all_keys()}
    with Quota(service.url, api.rotate_key(key_id=new.key_id, overlap_seconds=0).secret) as bound:
        assert bound.check(tenant, meter).allowed
        with pytest.raises(errors.Forbidden):
            bound.check("another", meter)
    api.revoke_key(key_id=new.key_id)
    assert next(iter(api.all_audit(limit=5))).audit_id
    api.list_seals()
    api.get_roll(roll_id=api.start_roll().roll_id)
    verification = api.start_verification(tenant=tenant).verification_id
    assert api.get_verification(verification_id=verification) and verification in {v.verification_id for v in api.all_verifications(tenant=tenant)}

    tour_of_gauges(api, tenant, f"seats-{run}", plan)
    tour_of_webhooks(api, tenant)
    assert api.list_denials(tenant=tenant, from_=now - timedelta(hours=1)).items is not None
    assert isinstance(list(api.all_events(tenant=tenant, limit=5)), list)
    assert api.get_status().requests
    assert api.create_portal_session(tenant=tenant, expires_in_seconds=60).url
    api.end_portal_sessions(tenant=tenant)

    # A seal of today does not exist before the day has ended.
    missing = operations() - service.transport.used - {"getSeal"}
    assert not missing, f"add calls to this test: {', '.join(sorted(missing))}"


def test_the_version_is_the_same_everywhere() -> None:
    import quotasvc

    assert 'path = "src/quotasvc/_version.py"' in (SDK / "pyproject.toml").read_text()
    assert re.fullmatch(r"\d+\.\d+\.\d+", quotasvc.__version__)
