"""The thresholds of a plan: what figures of its cells must be, as `p99_ms: "<1000"`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sinkbench.suggest import did_you_mean
from sinkbench.yamlfile import mistake, shown

FIGURES = (
    *("records_per_second", "efficiency", "p50_ms", "p95_ms", "p99_ms", "lost", "duplicates", "connections"),
    *("cpu_seconds_per_million", "memory_mb", "disk_bytes_per_record", "cost_per_million"),
)
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
_BOUND = re.compile(rf"({'|'.join(OPERATORS)})\s*(\d[\d_]*(?:\.\d+)?)")

Bounds = dict[str, dict[str, str]]
"""By the pipeline's label and the figure, as `< 1000`."""


class Bound(NamedTuple):
    operator: str
    value: float

    @classmethod
    def of(cls, text: str) -> Bound:
        """Reads a bound; ValueError if it is none."""
        if (found := _BOUND.fullmatch(text.strip())) is None:
            raise ValueError(text)
        return cls(found[1], float(found[2]))

    def holds(self, value: float) -> bool:
        return OPERATORS[self.operator](value, self.value)


def bounds_of(asked: Mapping[str, Any], labels: Sequence[str]) -> Bounds:
    """The bounds of each pipeline. Raises a mistake for an unknown figure or pipeline, and for what is no bound.

    `asked` has figures, for all pipelines, and labels with their own figures, which count instead.
    """
    common = {name: _bound(value, name) for name, value in asked.items() if not isinstance(value, Mapping)}
    own = {label: values for label, values in asked.items() if isinstance(values, Mapping)}
    _known(common, FIGURES, "figure", [*FIGURES, *labels])
    _known(own, labels, "pipeline", labels)
    for label, values in own.items():
        _known(values, FIGURES, "figure", FIGURES, label)
    return {
        label: {**common, **{name: _bound(value, label, name) for name, value in own.get(label, {}).items()}}
        for label in labels
    }


def _known(names: Mapping[str, Any], known: Sequence[str], kind: str, near: Sequence[str], *at: str) -> None:
    for name in names:
        if name not in known:
            raise mistake(f"there is no {kind} '{name}'{did_you_mean(name, near)}", "thresholds", *at, name)


def _bound(value: Any, *at: str) -> str:
    text = f"=={value}" if isinstance(value, int | float) and not isinstance(value, bool) else value
    try:
        bound = Bound.of(text)
    except (AttributeError, ValueError):
        example = 'a number, or a text such as "<1000"; it may begin with <, <=, >, >= or =='
        raise mistake(f"thresholds.{'.'.join(at)} must be {example}; found {shown(value)}", "thresholds", *at) from None
    return f"{bound.operator} {bound.value:.12g}"
