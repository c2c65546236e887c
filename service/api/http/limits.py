"""Limits of one caller: requests per second, concurrent requests, failed logins."""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from service.errors import BusyError, TooManyRequestsError

_V = TypeVar("_V")
Clock = Callable[[], float]
_REMEMBERED = 10_000
_BURST_S = 2.0
_FREE_FAILURES = 5
_LONGEST_WAIT_S = 60.0
_FORGIVEN_AFTER_S = 900.0


class Rates:
    """Token buckets by caller: `per_s` requests a second, a burst of twice as many."""

    def __init__(self, per_s: float, clock: Clock = time.monotonic) -> None:
        self._per_s = per_s
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> None:
        """Count a request of the caller `key`; raises TooManyRequestsError above the limit."""
        now = self._clock()
        most = max(1.0, self._per_s * _BURST_S)
        left, at = self._buckets.get(key, (most, now))
        left = min(most, left + (now - at) * self._per_s)
        if left < 1:
            raise TooManyRequestsError(
                f"more than {self._per_s:g} requests a second",
                hint="Send fewer requests; SLUICE_REQUESTS_PER_S limits each token or address.",
                retry_after_s=(1 - left) / self._per_s,
            )
        remember(self._buckets, key, (left - 1, now))


class Flights:
    """Counts concurrent requests, in total and by caller."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._most_of_one = max(1, most * 3 // 4)
        self._counts: Counter[str] = Counter()
        self._total = 0

    @contextmanager
    def one_more(self, key: str) -> Iterator[None]:
        """Count a request of the caller `key` while it runs; raises BusyError above the limit."""
        if self._total >= self._most or self._counts[key] >= self._most_of_one:
            raise BusyError(
                f"{self._total} requests are in progress, {self._counts[key]} of this caller",
                hint="Retry in a moment; close unused event streams.",
            )
        self._counts[key] += 1
        self._total += 1
        try:
            yield
        finally:
            self._total -= 1
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]


@dataclass(frozen=True, slots=True)
class _Failures:
    number: int
    last_at: float

    def wait_s(self, now: float) -> float:
        over = self.number - _FREE_FAILURES
        if over < 0:
            return 0.0
        return self.last_at + min(_LONGEST_WAIT_S, 2.0 ** min(over, 16)) - now


class Lockouts:
    """Delays after five failed logins: 1 s, then twice as long each time, up to 60 s.

    A key is an address with the token's id, so a program with an old token does not lock out
    others on its address.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, _Failures] = OrderedDict()

    def check(self, key: str) -> None:
        """Raise TooManyRequestsError while `key` has to wait."""
        failures = self._failures.get(key)
        wait_s = 0.0 if failures is None else failures.wait_s(self._clock())
        if wait_s > 0:
            raise TooManyRequestsError(
                "too many failed attempts with this token",
                hint="Correct the token, then wait as long as Retry-After says.",
                retry_after_s=wait_s,
            )

    def failed(self, key: str) -> None:
        now = self._clock()
        failures = self._failures.get(key)
        recent = failures is not None and now - failures.last_at < _FORGIVEN_AFTER_S
        number = failures.number + 1 if failures is not None and recent else 1
        remember(self._failures, key, _Failures(number, now))

    def succeeded(self, key: str) -> None:
        self._failures.pop(key, None)


def remember(entries: OrderedDict[str, _V], key: str, value: _V) -> None:
    """Store `value`; beyond the limit the least recently used entries are dropped."""
    entries[key] = value
    entries.move_to_end(key)
    while len(entries) > _REMEMBERED:
        entries.popitem(last=False)
