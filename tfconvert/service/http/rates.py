"""How many requests an owner may send: a bucket that fills with time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class RateLimiter:
    """Counts requests; those of a whole minute may come at once.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, owner: str, per_minute: int) -> float:
        """Returns 0 if a request may go on, else the seconds after which it may be repeated.

        Args:
            owner: Whose request it is.
            per_minute: How many there may be in a minute; 0 for any number.
        """
        if per_minute <= 0:
            return 0.0
        rate = per_minute / 60
        now = self._clock()
        with self._lock:
            left, since = self._buckets.get(owner, (float(per_minute), now))
            left = min(left + (now - since) * rate, float(per_minute))
            if left < 1:
                self._buckets[owner] = (left, now)
                return (1 - left) / rate
            self._buckets[owner] = (left - 1, now)
            return 0.0
