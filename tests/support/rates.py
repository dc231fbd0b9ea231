"""Rates of about 1,000 records/s, drawn at random, as simulated runs have them: normal, with stalls, and skewed."""

from collections.abc import Callable

import numpy as np

Draw = Callable[[np.random.Generator, int], np.ndarray]

NORMAL: Draw = lambda draw, count: draw.normal(1000, 100, count)  # noqa: E731
STALLS: Draw = lambda draw, count: np.maximum(1000 - draw.exponential(150, count), 50)  # noqa: E731
SKEWED: Draw = lambda draw, count: 1000 * draw.lognormal(0, 0.5, count)  # noqa: E731
