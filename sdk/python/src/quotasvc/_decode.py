"""JSON from and to the service.

An answer becomes a dataclass. Unknown members are ignored, and a missing one is None, so that an SDK and a service of different
versions understand each other.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Meta:
    """How an answer came about."""

    status: int = 0  # 0 if the service did not answer and the SDK let the request pass
    headers: Mapping[str, str] = field(default_factory=dict)  # look-ups ignore case
    attempts: int = 1  # requests that were sent for it
    failed_open: bool = False  # the service did not answer; nothing was charged

    @property
    def replayed(self) -> bool:
        """Whether the answer was stored for an earlier request with the same key."""
        return self.headers.get("Idempotent-Replayed") == "true"

    @property
    def request_id(self) -> str:
        """The id of the request in the service's log."""
        return self.headers.get("X-Request-Id", "")


class Answer:
    """Base of all answers."""

    meta: Meta = Meta()

    @property
    def failed_open(self) -> bool:
        """Whether the service did not answer and the SDK let the request pass. Amounts in such an answer mean nothing."""
        return self.meta.failed_open


def renamed(name: str, required: bool) -> Any:
    """Declares a field whose JSON name is no name of Python."""
    return field(metadata={"json": name}) if required else field(default=None, metadata={"json": name})


Decoder = Callable[[Any], Any]


def parse_time(text: str) -> datetime:
    """Parses a time of RFC 3339. Digits beyond microseconds are cut off."""
    return datetime.fromisoformat(text)


def _same(value: Any) -> Any:
    return value


def _decoder(annotation: Any) -> Decoder:
    """Returns the function that makes a value of this type from JSON."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        inner = [a for a in arguments if a is not type(None)]
        return _decoder(inner[0]) if len(inner) == 1 else _union(inner)
    if origin is list:
        each = _decoder(arguments[0])
        return _same if each is _same else lambda value: [each(v) for v in value]
    if annotation is datetime:
        return parse_time
    if isinstance(annotation, type) and is_dataclass(annotation):
        return lambda value: _object(annotation, value)
    return _same


def _union(classes: list[Any]) -> Decoder:
    """Decodes an object as the class whose required members it has."""

    def decode_union(value: Any) -> Any:
        for cls in classes:
            if all(name in value for _, name, _, needed in _plan(cls) if needed):
                return _object(cls, value)
        return value

    return decode_union if all(is_dataclass(c) for c in classes) else _same


@lru_cache(maxsize=None)  # bounded by the number of classes
def _plan(cls: Any) -> list[tuple[str, str, Decoder, bool]]:
    """Returns attribute, JSON name, decoder and whether it is required, for each field."""
    hints = typing.get_type_hints(cls)
    return [(f.name, f.metadata.get("json", f.name), _decoder(hints[f.name]), f.default is MISSING) for f in fields(cls)]


def _object(cls: Any, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError(f"{cls.__name__} is not an object")
    known: dict[str, Any] = {}
    for name, key, decoder, _ in _plan(cls):
        member = value.get(key)
        known[name] = None if member is None else decoder(member)
    return cls(**known)


def decode(cls: type[T], raw: bytes, meta: Meta) -> T:
    """Returns the answer in raw. It raises ValueError if raw is no such answer."""
    try:
        answer = _object(cls, json.loads(raw))
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(str(error)) from error
    object.__setattr__(answer, "meta", meta)
    return typing.cast(T, answer)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return time_text(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def time_text(at: datetime) -> str:
    """Returns a time for the service. A time without zone would mean another instant elsewhere, so it is refused."""
    if at.tzinfo is None:
        raise ValueError(f"{at.isoformat()} has no time zone: use datetime.now(timezone.utc), for example")
    return at.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def encode(body: Mapping[str, Any]) -> bytes:
    """Returns the JSON of a request. Members that are None are left out."""
    given = {name: value for name, value in body.items() if value is not None}
    return json.dumps(given, default=_text, separators=(",", ":"), allow_nan=False).encode()
