"""Webhooks by Standard Webhooks."""

from __future__ import annotations

import json
import time

import pytest

from quotasvc import Webhook, WebhookError

pytestmark = pytest.mark.feature("webhooks")

SECRET, OTHER = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
EVENT = {"type": "balance.exhausted", "timestamp": "2026-11-25T01:00:00Z", "data": {"tenant": "acme", "meter": "api_calls"}}


def delivery(secret: str | list[str] = SECRET, body: object = EVENT, at: int | None = None) -> tuple[bytes, dict[str, str]]:
    raw, at = json.dumps(body).encode(), int(time.time()) if at is None else at
    return raw, {"Webhook-Id": "evt_1", "Webhook-Timestamp": str(at), "Webhook-Signature": Webhook(secret).sign("evt_1", at, raw)}


def test_the_vector_of_the_standard() -> None:
    body = '{"test": 2432232314}'
    assert Webhook(SECRET).sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body) == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }  # fmt: skip
    with pytest.raises(WebhookError, match="the body is no event"):  # the signature is right
        Webhook(SECRET).verify(body, headers, now=1614265330)


def test_a_delivery_is_an_event() -> None:
    raw, headers = delivery()
    event = Webhook(SECRET).verify(raw, headers)
    assert (event.id, event.type, event.data["meter"], event.timestamp.year) == ("evt_1", "balance.exhausted", "api_calls", 2026)
    assert Webhook(SECRET).verify(raw.decode(), headers) == event


def test_both_secrets_count_during_a_rotation() -> None:
    raw, both = delivery([SECRET, OTHER])
    assert Webhook(SECRET).verify(raw, both) and Webhook(OTHER).verify(raw, both), "the service signs with both"
    raw, new = delivery(OTHER)
    assert Webhook([SECRET, OTHER]).verify(raw, new), "the receiver knows both"
    with pytest.raises(WebhookError, match="no signature matches"):
        Webhook(SECRET).verify(raw, new)


@pytest.mark.parametrize("seconds", [-301, 301])
def test_old_and_early_deliveries_are_refused(seconds: int) -> None:
    raw, headers = delivery(at=1_800_000_000)
    webhook = Webhook(SECRET)
    with pytest.raises(WebhookError, match="too far from the present"):
        webhook.verify(raw, headers, now=1_800_000_000 + seconds)
    assert webhook.verify(raw, headers, now=1_800_000_000 + (300 if seconds > 0 else -300))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"Webhook-Id": ""}, "are required"),
        ({"Webhook-Id": "evt_2"}, "no signature matches"),
        ({"Webhook-Timestamp": "1.5"}, "number of seconds"),
        ({"Webhook-Timestamp": "-1"}, "number of seconds"),
        ({"Webhook-Timestamp": "9" * 400}, "number of seconds"),
        ({"Webhook-Signature": "v1,"}, "no signature matches"),
        ({"Webhook-Signature": "v1,ä"}, "no signature matches"),
        ({"Webhook-Signature": "v2,AAAA nonsense"}, "no signature matches"),
        ({"Webhook-Signature": "v1,AAAA " * 10_000}, "no signature matches"),
    ],
)
def test_forged_deliveries_are_refused(change: dict[str, str], says: str) -> None:
    raw, headers = delivery()
    with pytest.raises(WebhookError, match=says):
        Webhook(SECRET).verify(raw, {**headers, **change})


def test_a_changed_body_is_refused() -> None:
    raw, headers = delivery()
    with pytest.raises(WebhookError, match="no signature matches"):
        Webhook(SECRET).verify(raw + b" ", headers)


@pytest.mark.parametrize("body", [[], {}, {**EVENT, "data": 1}, {**EVENT, "type": 1}, {**EVENT, "timestamp": "soon"}, None])
def test_a_body_that_is_no_event_is_refused(body: object) -> None:
    raw, headers = delivery(body=body)
    with pytest.raises(WebhookError, match="the body is no event"):
        Webhook(SECRET).verify(raw, headers)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_%%%", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", []])
def test_a_wrong_secret_is_refused(secret: str) -> None:
    with pytest.raises(ValueError, match="secret"):
        Webhook(secret)
