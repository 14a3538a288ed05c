"""Verification of webhooks, by Standard Webhooks: HMAC-SHA256 over id, timestamp and body.

    webhook = Webhook("whsec_...")
    event = webhook.verify(body, headers)        # body: the bytes as they came
    if seen_before(event.id): ...                # deliveries are repeated: event.id names the event
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from quotasvc._decode import parse_time

_PREFIX = "whsec_"
_MAX_SIGNATURES = 32  # a rotation has two; more only cost time


class WebhookError(Exception):
    """The request is not a delivery of the service, or too old. Answer 400 and do nothing."""


@dataclass(frozen=True)
class Event:
    """What happened."""

    id: str  # the same in every delivery of this event
    type: str  # for example balance.exhausted
    timestamp: datetime  # when it happened
    data: Mapping[str, Any]


class Webhook:
    """Verifies deliveries with one secret, or with several during a rotation."""

    def __init__(self, secret: str | Iterable[str], *, tolerance: float = 300.0) -> None:
        """secret: `whsec_` and base64, as the service showed it. tolerance: seconds by which a delivery's time may differ from the clock."""
        secrets = [secret] if isinstance(secret, str) else list(secret)
        if not secrets:
            raise ValueError("secret is required")
        self._keys = [_key(s) for s in secrets]
        self._tolerance = tolerance

    def verify(self, body: bytes | str, headers: Mapping[str, str], *, now: float | None = None) -> Event:
        """Returns the event of a delivery. It raises WebhookError if the delivery is forged, changed, too old or no event."""
        raw = body.encode() if isinstance(body, str) else bytes(body)
        fields = {name.lower(): value for name, value in headers.items()}
        message, stamp, signatures = (fields.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
        if not message or not stamp or not signatures:
            raise WebhookError("webhook-id, webhook-timestamp and webhook-signature are required")
        if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 15):
            raise WebhookError("webhook-timestamp must be a number of seconds")
        self._match(raw, message, stamp, signatures)
        if abs((time.time() if now is None else now) - int(stamp)) > self._tolerance:
            raise WebhookError("webhook-timestamp is too far from the present")
        return _event(raw, message, stamp)

    def _match(self, raw: bytes, message: str, stamp: str, signatures: str) -> None:
        given = []
        for signature in signatures.split(" ")[:_MAX_SIGNATURES]:
            version, _, text = signature.partition(",")
            if version == "v1":
                given.append(text.encode())
        good = False
        for key in self._keys:
            expected = _signature(key, message, stamp, raw).encode()
            for candidate in given:
                good |= hmac.compare_digest(expected, candidate)
        if not good:
            raise WebhookError("no signature matches")

    def sign(self, message: str, timestamp: int, body: bytes | str) -> str:
        """Returns the webhook-signature header that the service would send: for tests of a receiver."""
        raw = body.encode() if isinstance(body, str) else body
        return " ".join(f"v1,{_signature(key, message, str(timestamp), raw)}" for key in self._keys)


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(_PREFIX) or not key:
        raise ValueError("secret must be whsec_ followed by base64")
    return key


def _signature(key: bytes, message: str, stamp: str, raw: bytes) -> str:
    signed = message.encode() + b"." + stamp.encode() + b"." + raw
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def _event(raw: bytes, message: str, stamp: str) -> Event:
    try:
        body = json.loads(raw)
        kind, at, data = body["type"], parse_time(body["timestamp"]), body["data"]
        if not isinstance(kind, str) or not isinstance(data, dict):
            raise ValueError("type must be a text and data an object")
    except (ValueError, KeyError, TypeError) as error:
        raise WebhookError(f"the body is no event: {error}") from error
    return Event(message, kind, at, data)
