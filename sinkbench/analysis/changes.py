"""Change points: where the level of a series of runs changed.

Of all pairs of neighbouring windows, the first from the start of the series, that whose means of logarithms differ most
shows a change if at most 1 % of random orders of the series have one as large; both sides are then searched
(E-divisive, Matteson and James 2014, JASA 109, with means). Random orders need no normal noise. Apache Otava, which
splits alike, pins numpy and scipy to versions that sinkbench does not use."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

FEWEST_RUNS = 3
"""On each side of a change: fewer are outliers."""


def change_points(values: Sequence[float], first: int = 0) -> list[int]:
    """The places, in order, at which a new level of positive values begins; none of fewer than 6 values."""
    if len(values) < 2 * FEWEST_RUNS:
        return []
    # Imported here: it takes a second.
    from scipy.stats import permutation_test

    logs = np.log(values)
    at, end = np.array([(a, b) for a in range(FEWEST_RUNS, len(logs)) for b in range(a + FEWEST_RUNS, len(logs) + 1)]).T

    def shifts(orders: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        sums = np.cumsum(orders, axis=-1)
        left, right = sums[..., at - 1], sums[..., end - 1] - sums[..., at - 1]
        return np.asarray(np.abs(left / at - right / (end - at)) * np.sqrt(at * (end - at) / end))

    drawn: dict[str, Any] = {"permutation_type": "pairings", "alternative": "greater", "n_resamples": 1_999, "rng": 1}
    # Of a long series few orders at once, for the memory.
    drawn["batch"] = 1 + 1_000_000 // len(at)
    test = permutation_test((logs,), lambda orders, axis: shifts(orders).max(axis), vectorized=True, **drawn)
    if test.pvalue > 0.01:
        return []
    place = int(at[np.argmax(shifts(logs))])
    return [*change_points(values[:place], first), first + place, *change_points(values[place:], first + place)]
