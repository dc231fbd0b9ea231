"""Thresholds for a run: what somebody asks of pipelines, in one YAML file, and whether a run has shown it.

A figure is compared by its estimate: the median of the trials, or the ratio paired by block. Its interval is told
beside it, and whether it leaves the outcome open, so that whoever reads the failure knows if more trials would help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sinkbench.certainty import FEWEST_BLOCKS, ratio_by_block
from sinkbench.errors import PlanError
from sinkbench.plan import Plan, load_plan
from sinkbench.results import CellSummary, Interval, LatencyMs, RunSummary, TrialRecord
from sinkbench.suggest import did_you_mean
from sinkbench.summarize import valid_by_block
from sinkbench.yamlfile import YamlFile, mistake

__all__ = ["Check", "Outcome", "Thresholds", "load_thresholds", "outcome"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Bound(_Section):
    """What is asked of a figure."""

    at_least: float | None = Field(default=None, description="the figure must not be below this")
    at_most: float | None = Field(default=None, description="the figure must not be above this")

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise mistake("{name} asks nothing; give it at_least, or at_most, or both")
        return self

    def holds(self, value: float) -> bool:
        """Whether a value is what is asked."""
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def in_words(self) -> str:
        """As `at least 2 and at most 5`."""
        parts = (("at least", self.at_least), ("at most", self.at_most))
        return " and ".join(f"{word} {_number(value)}" for word, value in parts if value is not None)


class RatioBound(Bound):
    """What is asked of the ratio of two pipelines' rates."""

    to: str = Field(description="label of the pipeline that is divided by, or the key of its cell")


class CellThresholds(_Section):
    """What is asked of one cell; what is left out is not checked."""

    cell: str = Field(description="label of a pipeline of the plan or, at several multiples, the key of its cell")
    ratio: RatioBound | None = Field(default=None, description="of its rate to another pipeline's, paired by block")
    efficiency: Bound | None = Field(default=None, description="share of its sink's limit; the plan needs limits: true")
    records_per_second: Bound | None = Field(default=None, description="median of the trials; a capacity, if searched")
    p50_ms: Bound | None = Field(default=None, description="latency from due to stored, in milliseconds")
    p99_ms: Bound | None = Field(default=None, description="the same of the slowest hundredth")
    connections: Bound | None = Field(default=None, description="the most seen at once at the database itself")
    lost: Bound | None = Field(default=None, description="records, over all trials")
    duplicates: Bound | None = Field(default=None, description="records stored more than once, over all trials")


FIGURES = [name for name in CellThresholds.model_fields if name != "cell"]


class Thresholds(_Section):
    """A whole file of thresholds. Made by `load_thresholds`."""

    plan: str = Field(description="what is raced: a plan's file, relative to the file of thresholds")
    cells: Annotated[tuple[CellThresholds, ...], Field(strict=False, min_length=1)] = Field(
        description="what is asked, of one cell each"
    )


@dataclass(frozen=True)
class Check:
    """One figure of one cell, and what is asked of it."""

    cell: str
    figure: str
    bound: Bound

    @property
    def name(self) -> str:
        """As `postgres/jdbc: ratio to elasticsearch/camel-bulk`."""
        of = f" to {self.bound.to}" if isinstance(self.bound, RatioBound) else ""
        return f"{self.cell}: {self.figure}{of}"


@dataclass(frozen=True)
class Outcome:
    """Whether a check holds, and a line for a person: measured, asked, and the interval."""

    passed: bool
    line: str


@dataclass(frozen=True)
class _Figure:
    value: float | None
    interval: Interval | None = None
    spread: tuple[float, float] | None = None
    """The lowest and the highest trial, where they are too few for an interval."""


def load_thresholds(path: Path, connectors: Path) -> tuple[Plan, list[Check]]:
    """Reads a file of thresholds and the plan that it names.

    Args:
        path: the file.
        connectors: the folder of the pipelines that a plan may name.

    Raises:
        PlanError: a line for each mistake, in this file or in the plan: the file, the line, and what to do.
    """
    source = YamlFile(path, "file of thresholds", PlanError)
    try:
        wanted = Thresholds.model_validate(source.content)
    except ValidationError as invalid:
        models: dict[str, type[BaseModel]] = {"": Thresholds, "cells": CellThresholds}
        raise PlanError(source.explain(invalid, models)) from None
    plan = load_plan(path.parent / wanted.plan, connectors)
    labels = [entry.shown_name for entry in plan.pipelines]
    for index, asked in enumerate(wanted.cells):
        names = [(asked.cell, "cell"), *([(asked.ratio.to, "ratio")] if asked.ratio else [])]
        for name, key in names:
            if name.split("@")[0] not in labels:
                where = source.where("cells", index, key)
                raise PlanError(f"{where}: the plan {wanted.plan} has no pipeline '{name}'{did_you_mean(name, labels)}")
        if asked.efficiency is not None and not plan.limits:
            where = source.where("cells", index, "efficiency")
            raise PlanError(f"{where}: an efficiency needs the sink's limit; set limits: true in {wanted.plan}")
    return plan, [check for asked in wanted.cells for check in _checks(asked)]


def _checks(asked: CellThresholds) -> Iterator[Check]:
    for figure in FIGURES:
        bound = getattr(asked, figure)
        if bound is not None:
            yield Check(asked.cell, figure, bound)


def outcome(check: Check, summary: RunSummary, trials: Sequence[TrialRecord]) -> Outcome:
    """Whether a run has shown what a check asks.

    Args:
        check: the figure, and what is asked of it.
        summary: of the run.
        trials: all of its trials.

    Returns:
        That it does not hold, too, where the figure was not measured: a failure to measure proves nothing.
    """
    cell, problem = _cell(check.cell, summary)
    if cell is None:
        return Outcome(False, f"{check.name}: {problem}")
    figure = _FIGURES[check.figure](cell)
    if isinstance(check.bound, RatioBound):
        other, problem = _cell(check.bound.to, summary)
        if other is None:
            return Outcome(False, f"{check.name}: {problem}")
        figure = _ratio(cell, other, trials)
    asked = f"asked {check.bound.in_words()}"
    if figure.value is None:
        return Outcome(False, f"{check.name}: not measured, {asked}; the cell's verdict: {cell.verdict}")
    passed = check.bound.holds(figure.value)
    return Outcome(passed, f"{check.name}: measured {_number(figure.value)}{_sureness(figure, check.bound)}, {asked}")


def _cell(name: str, summary: RunSummary) -> tuple[CellSummary | None, str]:
    """The one cell of that label or key, or why there is not one."""
    found = [cell for cell in summary.cells if name in (cell.cell, cell.label)]
    if len(found) == 1:
        return found[0], ""
    keys = ", ".join(cell.cell for cell in found or summary.cells)
    return None, f"{'several cells are' if found else 'no cell is'} called that; name one of {keys}"


def _rate(cell: CellSummary) -> _Figure:
    rate = cell.records_per_second
    if rate is None or cell.invalid:
        return _Figure(None)
    return _Figure(rate.median, rate.interval, (rate.low, rate.high))


def _efficiency(cell: CellSummary) -> _Figure:
    rate, limit = _rate(cell), cell.limit_records_per_second
    if cell.efficiency is None or rate.spread is None or not limit:
        return _Figure(None)
    interval = rate.interval and rate.interval.model_copy(
        update={"low": rate.interval.low / limit, "high": rate.interval.high / limit}
    )
    return _Figure(cell.efficiency, interval, (rate.spread[0] / limit, rate.spread[1] / limit))


def _ratio(cell: CellSummary, other: CellSummary, trials: Sequence[TrialRecord]) -> _Figure:
    above, below = (valid_by_block(trial for trial in trials if trial.cell == each.cell) for each in (cell, other))
    found = ratio_by_block(other.cell, above, below)
    if found is None or cell.invalid or other.invalid:
        return _Figure(None)
    ratios = [above[block] / below[block] for block in above.keys() & below.keys()]
    return _Figure(found.estimate, found.interval, (min(ratios), max(ratios)))


def _latency(cell: CellSummary, quantile: str) -> _Figure:
    latency: LatencyMs | None = cell.latency_ms
    return _Figure(None if latency is None else getattr(latency, quantile))


def _connections(cell: CellSummary) -> _Figure:
    seen = cell.connections
    return _Figure(seen.server_peak if seen.server_peak is not None else seen.clients_peak)


_FIGURES: dict[str, Callable[[CellSummary], _Figure]] = {
    # Of two cells, so `outcome` itself finds it.
    "ratio": lambda cell: _Figure(None),
    "efficiency": _efficiency,
    "records_per_second": _rate,
    "p50_ms": lambda cell: _latency(cell, "p50"),
    "p99_ms": lambda cell: _latency(cell, "p99"),
    "connections": _connections,
    "lost": lambda cell: _Figure(None if cell.audit is None else cell.audit.lost),
    "duplicates": lambda cell: _Figure(None if cell.audit is None else cell.audit.duplicates),
}


def _sureness(figure: _Figure, bound: Bound) -> str:
    found = figure.interval
    if found is not None:
        open_ = bound.holds(found.low) != bound.holds(found.high)
        more = "; the interval holds the threshold, so more trials may decide otherwise" if open_ else ""
        confidence = f"{100 * found.confidence:.0f} % of {found.blocks} blocks"
        return f" ({_number(found.low)} to {_number(found.high)}, {confidence}{more})"
    if figure.spread is not None:
        low, high = figure.spread
        return f" (lowest trial {_number(low)}, highest {_number(high)}; fewer than {FEWEST_BLOCKS} have no interval)"
    return ""


def _number(value: float) -> str:
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
