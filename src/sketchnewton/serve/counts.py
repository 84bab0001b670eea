"""Requests and how long they took: counted where they are answered, added up where they are shown."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable
from typing import TypedDict

from sketchnewton.serve.errors import ApiError

__all__ = ["BOUNDS", "Counted", "Counts", "RouteTimes"]

BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper ends of the histogram's buckets, in seconds."""
_TIMES = 2000  # requests whose times make quantiles
_ERRORS = 20


class Failure(TypedDict):
    """A request that was refused."""

    time: float
    status: int
    code: str
    message: str


class Counted(TypedDict):
    """What a process has counted, as JSON has it."""

    requests: list[tuple[str, int, int]]
    """Path, status and how many."""
    routes: dict[str, tuple[list[float], list[int], float]]
    """Times of the last requests, numbers in the buckets, and the sum of all times, by path."""
    errors: list[Failure]


class RouteTimes:
    """Times of the requests for one path."""

    def __init__(self) -> None:
        self.recent: deque[float] = deque(maxlen=_TIMES)
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.recent.append(seconds)
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds

    def quantiles(self) -> dict[str, float]:
        """p50 and p99 of the last requests in ms."""
        if not self.recent:
            return {}
        ordered = sorted(self.recent)
        last = len(ordered) - 1
        return {name: 1000.0 * ordered[round(q * last)] for name, q in (("p50", 0.5), ("p99", 0.99))}


class Counts:
    """Requests by path and status, their times, and the last errors."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.routes: dict[str, RouteTimes] = {}
        self.errors: deque[Failure] = deque(maxlen=_ERRORS)
        self.total = 0

    def add(self, route: str, status: int, seconds: float, error: ApiError | None) -> None:
        """Count a request."""
        self.total += 1
        self.requests[route, status] += 1
        found = self.routes.get(route)
        if found is None:
            found = self.routes[route] = RouteTimes()
        found.add(seconds)
        if error is not None:
            self.errors.append(
                {"time": time.time(), "status": status, "code": error.code, "message": error.message[:200]}
            )

    def as_json(self) -> Counted:
        """All of it, for `merge`."""
        return {
            "requests": [(route, status, number) for (route, status), number in self.requests.items()],
            "routes": {
                route: (list(times.recent), times.buckets, times.seconds)
                for route, times in self.routes.items()
            },
            "errors": list(self.errors),
        }

    def merge(self, counted: Counted) -> None:
        """Add what another process has counted."""
        for route, status, number in counted["requests"]:
            self.requests[route, status] += number
            self.total += number
        for route, (recent, buckets, seconds) in counted["routes"].items():
            times = self.routes.setdefault(route, RouteTimes())
            times.recent.extend(recent)
            times.buckets = _sums(times.buckets, buckets)
            times.seconds += seconds
        self.errors.extend(counted["errors"])


def _sums(a: Iterable[int], b: Iterable[int]) -> list[int]:
    return [x + y for x, y in zip(a, b, strict=True)]
