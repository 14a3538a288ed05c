"""Waits before retries, and the budget that bounds retries."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

LONGEST = threading.TIMEOUT_MAX  # seconds that a thread can wait at most: 292 years on most systems


@dataclass(frozen=True)
class Backoff:
    """Computes the wait before a retry, with full jitter."""

    base: float = 0.1  # seconds: the maximum of the first wait; it doubles with each retry
    cap: float = 10.0  # seconds: the maximum of every wait, without the service's Retry-After
    random: Callable[[], float] = random.random  # returns a number in [0, 1)

    def wait(self, retry: int, after: float = 0) -> float:
        """Returns the wait before a retry in seconds. The first retry has number 1.

        It is `after`, the service's Retry-After, plus a random time from 0 to a bound. So no caller retries too early, and callers with the
        same Retry-After retry at different times.
        """
        bound = min(self.base * 2.0 ** min(max(retry, 1) - 1, 62), self.cap)
        return min(max(after, 0.0) + min(max(self.random(), 0.0), 1.0) * bound, LONGEST)


class Budget:
    """Bounds retries to a tenth of the requests, plus ten. So a client does not multiply the load when every request fails."""

    COST = 10  # a retry costs what ten requests earn
    MAX = 10 * COST

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent = 0

    def earn(self) -> None:
        """Adds what one request earns."""
        with self._lock:
            self._spent = max(self._spent - 1, 0)

    def take(self) -> bool:
        """Takes one retry. It returns False if the budget is used up."""
        with self._lock:
            if self._spent + self.COST > self.MAX:
                return False
            self._spent += self.COST
            return True


def retry_after(headers: Mapping[str, str]) -> float:
    """Returns the seconds that Retry-After asks for, as a number or as a date, at most LONGEST; 0 if it is missing or invalid."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text), LONGEST)
    try:
        at, now = parsedate_to_datetime(text), parsedate_to_datetime(headers.get("Date", ""))
        return min(max((at - now).total_seconds(), 0.0), LONGEST)
    except (TypeError, ValueError):
        return 0.0
