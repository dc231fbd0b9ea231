"""Thresholds for a run from one YAML file, and whether a run meets them, by the estimate of each figure. If the
interval contains the threshold, more trials may change the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, ValidationError, model_validator

from sinkbench.analysis.intervals import FEWEST_BLOCKS, ratio_by_block
from sinkbench.analysis.rates import usable_rate
from sinkbench.analysis.words import percent
from sinkbench.errors import PlanError
from sinkbench.plan.plan import Plan, load_plan
from sinkbench.results import CellSummary, Interval, RunSummary, Spread, TrialRecord
from sinkbench.suggest import did_you_mean
from sinkbench.summary.cells import valid_by_block
from sinkbench.yamlfile import Section, YamlFile, mistake


class Bound(Section):
    at_least: float | None = Field(default=None, description="the figure must not be below this")
    at_most: float | None = Field(default=None, description="the figure must not be above this")

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise mistake("{name} asks nothing; give it at_least, or at_most, or both")
        return self

    def holds(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def in_words(self) -> str:
        """As `at least 2 and at most 5`."""
        parts = (("at least", self.at_least), ("at most", self.at_most))
        return " and ".join(f"{word} {_number(value)}" for word, value in parts if value is not None)


class RatioBound(Bound):
    to: str = Field(description="label of the pipeline that is divided by, or the key of its cell")


class CellThresholds(Section):
    cell: str = Field(description="label of a pipeline of the plan or, at several multiples, the key of its cell")
    ratio: RatioBound | None = Field(default=None, description="of its rate to another pipeline's, paired by block")
    efficiency: Bound | None = Field(default=None, description="share of its sink's limit; the plan needs limits: true")
    records_per_second: Bound | None = Field(default=None, description="median of the trials; a capacity, if searched")
    cpu_seconds_per_million: Bound | None = Field(
        default=None, description="CPU seconds of all services together for a million records, median of the trials"
    )
    memory_mb: Bound | None = Field(
        default=None,
        description="the most that Kafka, Connect and the sink held together, in 10^6 bytes, median of the trials",
    )
    disk_bytes_per_record: Bound | None = Field(
        default=None, description="what the sink's index or table takes for a stored record, median of the trials"
    )
    cost_per_million: Bound | None = Field(
        default=None, description="cost of a million records in the currency of the plan's prices, which it needs"
    )
    p50_ms: Bound | None = Field(default=None, description="latency from due to stored, in milliseconds")
    p99_ms: Bound | None = Field(default=None, description="the same of the slowest hundredth")
    connections: Bound | None = Field(default=None, description="the most seen at once at the database itself")
    lost: Bound | None = Field(default=None, description="records, over all trials")
    duplicates: Bound | None = Field(default=None, description="records stored more than once, over all trials")


class Thresholds(Section):
    """A whole file of thresholds, made by `load_thresholds`."""

    plan: str = Field(description="what is raced: a plan's file, relative to the file of thresholds")
    cells: Annotated[tuple[CellThresholds, ...], Field(strict=False, min_length=1)] = Field(
        description="what is asked, of one cell each"
    )


@dataclass(frozen=True)
class Check:
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
    passed: bool
    line: str


@dataclass(frozen=True)
class _Figure:
    value: float | None
    interval: Interval | None = None
    # The lowest and the highest trial.
    spread: tuple[float, float] | None = None


def load_thresholds(path: Path, connectors: Path) -> tuple[Plan, list[Check]]:
    """Reads a file of thresholds and its plan, as `load_plan` does. PlanError has a line for each mistake in either
    file."""
    source = YamlFile(path, "file of thresholds", PlanError)
    try:
        wanted = Thresholds.model_validate(source.content)
    except ValidationError as invalid:
        raise PlanError(source.explain(invalid, Thresholds)) from None
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
        if asked.cost_per_million is not None and plan.prices is None:
            where = source.where("cells", index, "cost_per_million")
            raise PlanError(f"{where}: a cost needs prices; give {wanted.plan} the key prices")
    asked_for = ((asked.cell, figure, getattr(asked, figure)) for asked in wanted.cells for figure in _FIGURES)
    return plan, [Check(cell, figure, bound) for cell, figure, bound in asked_for if bound is not None]


def outcome(check: Check, summary: RunSummary, trials: Sequence[TrialRecord]) -> Outcome:
    """Whether a run, with all its `trials`, meets a check. A figure that was not measured does not."""
    try:
        cell = _cell(check.cell, summary)
        other = _cell(check.bound.to, summary) if isinstance(check.bound, RatioBound) else None
    except LookupError as problem:
        return Outcome(False, f"{check.name}: {problem}")
    figure = _FIGURES[check.figure](cell) if other is None else _ratio(cell, other, trials)
    asked = f"asked {check.bound.in_words()}"
    if check.figure in _OF_AUDITS and cell.not_audited and not _is_too_much(figure.value, check.bound):
        found = "" if figure.value is None else f" ({_number(figure.value)} in the others)"
        why = f"not audited in {cell.not_audited} of {cell.trials} trials{found}"
        return Outcome(False, f"{check.name}: not measured, {asked}; {why}: the notes of the run say why; race again")
    if figure.value is None:
        unready = next((each for each in (cell, other) if each is not None and each.at_least is not None), None)
        if check.figure == "connections" and cell.connections.others:
            why = f"{cell.connections.others} of others were opened meanwhile; race without them"
            return Outcome(False, f"{check.name}: not measured, {asked}; {why}")
        blamed = cell if unready is None or check.figure not in _OF_RATES else unready
        return Outcome(False, f"{check.name}: not measured, {asked}; the verdict of {blamed.cell}: {blamed.verdict}")
    passed = check.bound.holds(figure.value)
    return Outcome(passed, f"{check.name}: measured {_number(figure.value)}{_sureness(figure, check.bound)}, {asked}")


def _is_too_much(value: float | None, bound: Bound) -> bool:
    """Whether a count that may still grow already exceeds its bound."""
    return value is not None and bound.at_most is not None and value > bound.at_most


def _cell(name: str, summary: RunSummary) -> CellSummary:
    """The one cell of that label or key; LookupError says why there is not exactly one."""
    found = [cell for cell in summary.cells if name in (cell.cell, cell.label)]
    if len(found) == 1:
        return found[0]
    keys = ", ".join(cell.cell for cell in found or summary.cells)
    raise LookupError(f"{'several cells are' if found else 'no cell is'} called that; name one of {keys}")


def _rate(cell: CellSummary) -> _Figure:
    rate = usable_rate(cell)
    return _Figure(None) if rate is None else _Figure(rate.median, rate.interval, (rate.low, rate.high))


def _spread(cell: CellSummary, found: Spread | None, unit: float = 1.0) -> _Figure:
    """A figure over the trials of a cell, in this unit; empty if the cell's rate is not quotable."""
    if found is None or cell.invalid or cell.at_least is not None:
        return _Figure(None)
    interval = found.interval
    if interval is not None:
        interval = interval.model_copy(update={"low": interval.low / unit, "high": interval.high / unit})
    return _Figure(found.median / unit, interval, (found.low / unit, found.high / unit))


def _efficiency(cell: CellSummary) -> _Figure:
    rate, limit = _rate(cell), cell.limit_records_per_second
    if cell.efficiency is None or rate.spread is None or not limit:
        return _Figure(None)
    if (shares := cell.efficiency_by_block) is not None:
        return _Figure(shares.median, shares.interval, (shares.low, shares.high))
    # For a limit that was measured once: without its own scatter.
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
    return _Figure(None if cell.latency_ms is None else getattr(cell.latency_ms, quantile))


def _connections(cell: CellSummary) -> _Figure:
    seen = cell.connections
    return _Figure(seen.server_peak if seen.server_peak is not None else seen.clients_peak)


# A cell that was not warm and steady does not have these.
_OF_RATES = {
    *("ratio", "efficiency", "records_per_second", "cpu_seconds_per_million"),
    *("memory_mb", "disk_bytes_per_record", "cost_per_million"),
}
_OF_AUDITS = {"lost", "duplicates"}
_FIGURES: dict[str, Callable[[CellSummary], _Figure]] = {
    # It needs two cells, so `outcome` computes it.
    "ratio": lambda cell: _Figure(None),
    "efficiency": _efficiency,
    "records_per_second": _rate,
    "cpu_seconds_per_million": lambda cell: _spread(cell, cell.total_cpu_seconds_per_million),
    "memory_mb": lambda cell: _spread(cell, cell.total_peak_memory_bytes, 1e6),
    "disk_bytes_per_record": lambda cell: _spread(cell, cell.disk_bytes_per_record),
    "cost_per_million": lambda cell: _Figure(None if cell.cost is None else cell.cost.per_million),
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
        sure = f"{percent(found.confidence)} of {found.blocks} blocks"
        return f" ({_number(found.low)} to {_number(found.high)}, {sure}{more})"
    if figure.spread is not None:
        low, high = figure.spread
        return f" (lowest trial {_number(low)}, highest {_number(high)}; fewer than {FEWEST_BLOCKS} have no interval)"
    return ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1_000 else f"{value:.3g}"
