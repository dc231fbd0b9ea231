"""Figures per service of a cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from sinkbench.analysis.rates import median_known
from sinkbench.metrics.format import NOT_MEASURED, megabytes
from sinkbench.metrics.names import SHORT_NAMES
from sinkbench.results import JvmCpu, Memory

_LEAST_BYTES = 5e5
_Figures = TypeVar("_Figures", JvmCpu, Memory)


def by_service(figures: type[_Figures], trials: Sequence[Mapping[str, _Figures]]) -> dict[str, _Figures]:
    seen = {name: [each[name] for each in trials if name in each] for name in dict.fromkeys(chain(*trials))}
    return {
        name: figures(**{field: median_known(getattr(each, field) for each in found) for field in figures.model_fields})
        for name, found in seen.items()
    }


def megabytes_by_service(figures: Iterable[tuple[str, float | None]]) -> str:
    """As `connect:2,897 es:1,200`, largest first, without zeros."""
    known = sorted((-value, name) for name, value in figures if value is not None and value >= _LEAST_BYTES)
    return " ".join(f"{SHORT_NAMES.get(name, name)}:{megabytes(-less)}" for less, name in known) or NOT_MEASURED
