"""How far another machine's clock is ahead of this one's."""

import time
from collections.abc import Callable, Sequence

QUESTIONS = 9


def clock_offset(read_us: Callable[[], float]) -> tuple[float, float]:
    """How far the clock that `read_us` asks for is ahead of this machine's, and how far the true value may be from
    that, in microseconds; see `offset_of`."""
    asked = []
    for _ in range(QUESTIONS):
        before = time.time_ns() / 1000
        asked.append((before, read_us(), time.time_ns() / 1000))
    return offset_of(asked)


def offset_of(asked: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Each entry is this machine's time, the other's, and this machine's again; the quickest one counts (F. Cristian,
    "Probabilistic clock synchronization", Distributed Computing 3, 1989). A difference within its round trip is 0, with
    the resolution of a clock, 1 microsecond."""
    reach, offset = min(((after - before) / 2, theirs - (before + after) / 2) for before, theirs, after in asked)
    return (0.0, 1.0) if abs(offset) <= reach else (offset, reach)
