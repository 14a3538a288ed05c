"""The holds of LocalUnits: when each is captured, extended and returned, and how many units the next one has. Pure, without clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Action = Literal["capture", "finish", "release", "extend"]  # finish: capture and return the rest


@dataclass(eq=False)
class Operation:
    """One change at the service. Its key and body stay the same over all attempts, so that it takes effect once."""

    path: str
    key: str
    body: dict[str, Any]
    do: Action | None = None
    amount: int = 0  # what it charges
    tries: int = 0
    first: float = 0.0  # start of the first attempt
    wait: float = 0.0  # after the last attempt, which failed
    retry: float = 0.0  # when to try again


@dataclass
class LocalHold:
    """A hold of the service that this process spends. Times are of the process's monotonic clock."""

    id: str
    size: int  # units; 0 if it is not known whether the hold exists
    taken: int = 0
    captured: int = 0  # by answered captures; at most taken
    asked: int = 0  # captured and in the capture that is under way
    since: float = 0.0  # when the oldest taken unit beyond asked was taken
    renew: float = 0.0  # when to extend it
    old: float = 0.0  # when it still was not extended: other units are asked for
    stop: float = 0.0  # when takes from it end, so that there is time to capture them before the service ends the hold
    reset: float = 0.0  # end of the period that pays it; 0 = none
    touched: bool = False  # something was taken since it was made or extended
    ending: bool = False  # its last operation is due
    changes: int = 0  # operations on it so far; numbers their keys
    op: Operation | None = None  # under way or unanswered

    def lasts(self, end: float, ttl: float) -> None:
        """Sets when the hold is extended and stopped. The service keeps it at least until end."""
        self.renew, self.old, self.stop = end - ttl / 2, end - ttl / 3, end - ttl / 6

    def free(self, now: float) -> int:
        """Returns the units that can be taken."""
        return 0 if self.ending or now >= self.stop else self.size - self.taken

    def take(self, n: int, now: float) -> bool:
        """Takes n units. It returns True if the settler has something new to do."""
        first = self.taken == self.asked
        if first:
            self.since = now
        self.taken += n
        self.touched = True
        return first or self.taken == self.size

    def next(self, now: float, ttl: float, capture_every: float, closing: bool) -> tuple[Action | None, float]:
        """Returns what to do now, or None and when to ask again.

        A hold that is spent, or is near its end, ends. One in use is extended when half of its life is over, but not beyond the period that
        pays it: a hold would carry its units into the next one. One not in use is returned then.
        """
        extendable = self.touched and (not self.reset or now + ttl <= self.reset)
        idle = now >= self.renew and not self.touched
        if closing or self.ending or idle or self.taken == self.size or now >= self.stop:
            return ("finish" if self.taken > self.captured else "release"), 0.0
        if now >= self.renew and extendable:
            return "extend", 0.0
        due = self.renew if now < self.renew else self.stop
        if self.taken > self.captured:
            if now >= self.since + capture_every:
                return "capture", 0.0
            due = min(due, self.since + capture_every)
        return None, due


@dataclass
class Sizing:
    """Decides how many units a hold gets."""

    min: int
    max: int
    chunk: int = 0  # size of the last hold
    missing: int = 0  # what the largest refused take lacked since
    remaining: int | None = None  # what the balance had after the last answer
    rate: float = 0.0  # taken units per second
    taken: int = 0  # at the last hold
    at: float = 0.0  # of the last hold
    SHARE: int = field(default=4, init=False)  # one hold takes at most a quarter of what remains, so that others get some

    def low(self) -> int:
        """Returns the number of free units below which more are asked for: half a second of use."""
        return (self.chunk + 1) // 2

    def next(self, taken: int, now: float) -> int:
        """Returns the size of the next hold: what is used in a second, or twice the last one if that was spent too early."""
        elapsed = max(now - self.at, 0.001)
        self.rate = (self.rate + (taken - self.taken) / elapsed) / 2
        self.taken, self.at = taken, now
        want = int(min(self.rate, self.max))
        if self.missing:
            want = max(want, min(self.chunk, self.max // 2) * 2)
        return self.cut(min(max(want, self.min), self.max))

    def cut(self, want: int) -> int:
        """Limits a hold to its share of what remains. It has at least what the largest refused take lacked."""
        if self.remaining is not None:
            want = min(want, max(self.remaining, 0) // self.SHARE + 1)
        self.chunk = max(want, self.missing)
        return self.chunk

    def smaller(self, available: int) -> int:
        """Returns the size of another attempt after a refusal with so many units left; 0: none makes sense."""
        if available < 1 or available < self.missing or available >= self.chunk:
            return 0
        self.remaining = available
        return self.cut(self.chunk)
