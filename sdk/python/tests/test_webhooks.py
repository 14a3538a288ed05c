"""Webhooks by Standard Webhooks."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, Queue

import pytest

from quotasvc import Event, Quota, Webhook, WebhookError

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


class Receiver:
    """Takes deliveries of the service."""

    def __init__(self) -> None:
        self.deliveries: Queue[tuple[bytes, dict[str, str]]] = Queue()
        deliveries = self.deliveries

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                deliveries.put((self.rfile.read(int(self.headers["content-length"])), dict(self.headers.items())))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/hooks"

    def arrives(self, *signed: tuple[str, bool], replay: Callable[[], None] = lambda: None) -> Event:
        """Waits for a delivery that is genuine by some secrets and not by others. One may come twice, and late, and a replay leaves one that is under way
        as it is: then it is asked for again."""
        replay()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                raw, headers = self.deliveries.get(timeout=1)
            except Empty:
                replay()
                continue
            if [genuine(raw, headers, secret) is not None for secret, _ in signed] == [expected for _, expected in signed]:
                event = genuine(raw, headers, next(secret for secret, expected in signed if expected))
                assert event is not None
                return event
        raise AssertionError(f"no delivery is signed {signed}")


def genuine(raw: bytes, headers: dict[str, str], secret: str) -> Event | None:
    try:
        return Webhook(secret).verify(raw, headers)
    except WebhookError:
        return None


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


def test_what_the_service_delivers_is_genuine_before_during_and_after_a_rotation(quota: Quota, receiver: Receiver) -> None:
    name = f"w-{uuid.uuid4().hex[:12]}"
    quota.api.put_plan(plan=name, allowances=[{"meter": "api_calls", "amount": 10, "every": "year", "anchor": "tenant"}])
    quota.api.put_tenant(tenant=name, plan=name)
    webhook = quota.api.create_webhook(url=receiver.url, types=["balance.threshold_reached"], tenant=name)
    first = webhook.secret

    def replay() -> None:
        quota.api.replay_webhook(webhook_id=webhook.webhook_id, from_=datetime.now(timezone.utc) - timedelta(hours=1))

    try:
        quota.debit(name, "api_calls", 8)
        event = receiver.arrives((first, True), (SECRET, False))
        assert (event.type, event.data["threshold"], event.data["remaining"], event.data["tenant"]) == ("balance.threshold_reached", 80, 2, name)
        second = quota.api.rotate_webhook(webhook_id=webhook.webhook_id, overlap_seconds=3600).secret
        assert receiver.arrives((first, True), (second, True), replay=replay) == event
        third = quota.api.rotate_webhook(webhook_id=webhook.webhook_id, overlap_seconds=0).secret
        assert receiver.arrives((first, False), (second, False), (third, True), replay=replay) == event
    finally:
        quota.api.delete_webhook(webhook_id=webhook.webhook_id)
