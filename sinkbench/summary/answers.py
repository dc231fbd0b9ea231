"""The answers of a run: which sink is faster at equal jobs, and what batches, indexes and a pooler change.

Sinks are compared by the fastest pipeline of each that does the same job, and reference connectors only with each
other. If a pipeline that does it, or may do it, is not final and may be the fastest, nothing is decided: what is
missing from a run must not make an answer wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Literal, get_args

from sinkbench.analysis.intervals import ratio_of
from sinkbench.analysis.keyed import REFERENCE
from sinkbench.analysis.rates import most, usable_median, usable_rate
from sinkbench.metrics.metric import find
from sinkbench.metrics.queries import job_of
from sinkbench.results import CellSummary, RatioTo, RunSummary

Job = frozenset[str]
# Of which cells an answer is, where reference connectors are apart.
Through = Literal["reference", "others"]
# What a change of a pipeline changes.
What = Literal["connector", "batches", "indexes", "pooler"]
# A connector that writes record by record shows slightly more or fewer than one, because of other writes.
ONE_BY_ONE = 1.5
# In what cells must be alike to differ in one thing.
_CONDITIONS = ("form", "partitions", "acks", "settings", "variables")
# The published comparison: one request per record with Elasticsearch, batches with PostgreSQL.
_PUBLISHED = ("elasticsearch/camel-index", "postgres/jdbc")


@dataclass(frozen=True)
class Pair:
    """Two final cells. `ratio` is the faster's rate to the slower's; `low` and `high` are from the faster's lowest to
    the slower's highest trial, and the reverse."""

    faster: CellSummary
    slower: CellSummary
    ratio: RatioTo
    low: float
    high: float


@dataclass(frozen=True)
class Side:
    """A sink at a job: its fastest final cell, and what may be faster: cells that are not final or whose job is not
    known, and the keys of cells that the summary lacks."""

    sink: str
    best: CellSummary | None
    undecided: Sequence[CellSummary]
    missing: Sequence[str]

    @property
    def is_open(self) -> bool:
        return self.best is None or bool(self.undecided or self.missing)

    @property
    def fastest(self) -> CellSummary | None:
        """The cell with the fastest trial; None if nothing is known of one that counts."""
        cells = [*self.undecided, *([] if self.best is None else [self.best])]
        if self.missing or not cells or any(fastest_trial(cell) is None for cell in cells):
            return None
        return max(cells, key=lambda cell: fastest_trial(cell) or 0.0)


@dataclass(frozen=True)
class Answer:
    """Two sinks at a job: the queries that both answer by an index; None if no job is known to be the same. `pair` is
    None where that is not decided. `through` these connectors alone; None: through any."""

    job: Job | None
    sides: tuple[Side, Side]
    pair: Pair | None
    through: Through | None = None

    @property
    def fastest(self) -> list[CellSummary]:
        """The cells with the fastest trials, of a decided sink first; none of a sink that has an unknown cell."""
        sides = sorted(self.sides, key=lambda side: side.is_open)
        return [cell for side in sides if (cell := side.fastest) is not None]

    def bound(self) -> tuple[float, bool] | None:
        """How many times as fast the fastest trial of the decided sink is as that of the other one, and whether the
        sink itself cannot be faster than that; None if both are open, or nothing is known of a cell."""
        cells = self.fastest
        if self.job is None or all(side.is_open for side in self.sides) or len(cells) != len(self.sides):
            return None
        first, second = (fastest_trial(cell) or 0.0 for cell in cells)
        surely = find(cells[1], "at_least.figures.records_per_second") is not None
        return (first / second, surely) if second else None


def answers_of(summary: RunSummary) -> list[Answer]:
    """The answers between each two sinks, one for each job that both are known to do, the one with most queries first;
    if no such job is known, but may be, one that is not decided. None for constant loads, which store what is offered,
    and where nothing was measured."""
    cells = compared_cells(summary)
    lost = {key: sink for key, sink in summary.plan.cells.items() if key not in {cell.cell for cell in cells}}
    found = []
    for pair in combinations(dict.fromkeys([*(cell.sink for cell in cells), *lost.values()]), 2):
        known = [{job_of(cell) for cell in cells if cell.sink == sink} for sink in pair]
        unsure = None in known[0] | known[1] or not set(pair).isdisjoint(lost.values())
        for job in (known[0] & known[1]) - {None} or ({None} if unsure else set()):
            for through, own in _groups(pair, job, cells):
                one, other = sides = tuple(_side(sink, job, own, lost) for sink in pair)
                measured = any(side.best or any(cell.passed for cell in side.undecided) for side in sides)
                decided = job is not None and not any(side.is_open for side in sides)
                if measured:
                    both = (one.best, other.best) if decided else (None, None)
                    found.append(Answer(job, (one, other), pair_of(*both), through))
    return sorted(found, key=lambda each: (each.job is None, -len(each.job or ()), sorted(each.job or ())))


def _groups(
    sinks: Sequence[str], job: Job | None, cells: Sequence[CellSummary]
) -> list[tuple[Through | None, Sequence[CellSummary]]]:
    """The cells compared with each other: those that may do the job, by connector where one of them has both sinks."""
    may = [cell for cell in cells if cell.sink in sinks and (job is None or job_of(cell) in (job, None))]
    parts: dict[Through, list[CellSummary]] = {"reference": [], "others": []}
    for cell in may:
        parts["reference" if _is_reference(cell) else "others"].append(cell)
    if not parts["reference"]:
        return [(None, may)]
    return [each for each in parts.items() if {cell.sink for cell in each[1]} == set(sinks)] or [(None, may)]


def _side(sink: str, job: Job | None, cells: Sequence[CellSummary], lost: Mapping[str, str]) -> Side:
    may = [cell for cell in cells if cell.sink == sink]
    # A cell whose queries were not checked may do any job.
    sure = [cell for cell in may if is_final(cell) and (job is None or job_of(cell) == job)]
    best, keys = max(sure, key=_rate, default=None), {cell.cell for cell in sure}

    def may_be_faster(cell: CellSummary) -> bool:
        fastest = fastest_trial(cell)
        return cell.cell not in keys and (best is None or fastest is None or fastest >= _rate(best))

    return Side(sink, best, list(filter(may_be_faster, may)), [key for key, of in lost.items() if of == sink])


def pair_of(one: CellSummary | None, other: CellSummary | None) -> Pair | None:
    """Two cells that are final; None if one is not."""
    if one is None or other is None or not is_final(one) or not is_final(other):
        return None
    # Of close ones the median ratio by block may be the reverse of that of the medians.
    return max(_pair(one, other), _pair(other, one), key=lambda pair: pair.ratio.estimate if pair else 0.0)


def _pair(faster: CellSummary, slower: CellSummary) -> Pair | None:
    fast, slow = usable_rate(faster), usable_rate(slower)
    if fast is None or slow is None:
        return None
    # A capacity is one search: its confirming rates are no sample of it.
    blocks = [rate.by_block() if faster.mode == "drain" else {} for rate in (fast, slow)]
    if (ratio := ratio_of(slower.cell, blocks[0], blocks[1], fast.median / slow.median)) is None:
        return None
    return Pair(faster, slower, ratio, fast.low / slow.high, fast.high / max(slow.low, 1e-9))


def ends_of(summary: RunSummary) -> list[Pair]:
    """Of a run with a single sink the fastest and the slowest final cell of each job."""
    cells = compared_cells(summary)
    if len({cell.sink for cell in cells}) != 1:
        return []
    asked = any(cell.queries for cell in cells)
    jobs: dict[object, list[CellSummary]] = {}
    for cell in filter(is_final, cells):
        jobs.setdefault(job_of(cell) if asked else (cell.target, cell.form), []).append(cell)
    ends = [pair_of(max(each, key=_rate), min(each, key=_rate)) for job, each in jobs.items() if job is not None]
    return [each for each in ends if each is not None and each.faster is not each.slower]


def unmatched(summary: RunSummary) -> list[CellSummary]:
    """The fastest final cell of each sink if all their jobs are known and no two sinks do the same; else none."""
    best = {cell.sink: cell for cell in sorted(filter(is_final, compared_cells(summary)), key=_rate)}
    best = {sink: cell for sink, cell in best.items() if job_of(cell) is not None}
    return list(best.values()) if len(best) > 1 and not answers_of(summary) else []


def published_of(summary: RunSummary) -> Pair | None:
    """The published pipelines, unchanged, at the fewest tasks that both have."""
    cells = [cell for cell in compared_cells(summary) if cell.pipeline in _PUBLISHED and cell.target is None]
    final = [cell for cell in cells if is_final(cell) and not cell.overrides and not cell.settings]
    pairs = [each for each in combinations(final, 2) if each[0].sink != each[1].sink and each[0].tasks == each[1].tasks]
    return pair_of(*min(pairs, key=lambda each: each[0].tasks)) if pairs else None


@dataclass(frozen=True)
class Change:
    """What one change of a pipeline does to its rate: `second` has it, `first` does not."""

    what: What
    first: CellSummary
    second: CellSummary

    @property
    def ratio(self) -> tuple[float, float, float] | None:
        """The second's rate to the first's, and its lowest and highest: the interval, or by trials. That of the fastest
        trials alone if one of them is not final; None if there is none."""
        if (pair := pair_of(self.first, self.second)) is None:
            first, second = fastest_trial(self.first), fastest_trial(self.second)
            return (second / first,) * 3 if first and second else None
        estimate, interval = pair.ratio.estimate, pair.ratio.interval
        low, high = (pair.low, pair.high) if interval is None else (interval.low, interval.high)
        return (estimate, low, high) if pair.faster is self.second else (1 / estimate, 1 / high, 1 / low)


def changes_of(summary: RunSummary) -> list[Change]:
    """For each kind of change and sink the two fastest cells with equally many tasks that differ in it alone, at the
    fewest tasks that have both; of indexes those whose jobs differ most."""
    drains = [cell for cell in compared_cells(summary) if cell.mode == "drain" and cell.passed]
    found = []
    for what in get_args(What):
        for sink in dict.fromkeys(cell.sink for cell in drains):
            own = permutations((cell for cell in drains if cell.sink == sink), 2)
            if pairs := [each for each in own if each[0].tasks == each[1].tasks and _differ(*each)[what]]:
                found.append(Change(what, *max(pairs, key=_told_first)))
    return found


def _told_first(pair: tuple[CellSummary, CellSummary]) -> tuple[float, ...]:
    first, second = pair
    more = len(job_of(second) or ()) - len(job_of(first) or ())
    return -first.tasks, more, sum(fastest_trial(cell) or 0.0 for cell in pair)


def _alike(one: CellSummary, other: CellSummary, *names: str) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in (*_CONDITIONS, *names))


def _is_reference(cell: CellSummary) -> bool:
    return (cell.connector or "").startswith(REFERENCE)


def _differ(one: CellSummary, other: CellSummary) -> dict[What, bool]:
    """Whether the cells differ in each of these alone, and the first one is without the change."""
    job, its_job = job_of(one), job_of(other)
    from_reference = _is_reference(one) and not _is_reference(other) and other.connector is not None
    known = None not in (one.connector, one.records_per_write)
    pooled = one.pool is None and other.pool is not None
    one_by_one = (one.records_per_write or 0.0) < ONE_BY_ONE <= (other.records_per_write or 0.0)
    return {
        "connector": from_reference and job == its_job and _alike(one, other, "target", "pool"),
        "batches": known and one_by_one and _alike(one, other, "connector", "target", "pool"),
        "indexes": job is not None and job < (its_job or Job()) and _alike(one, other, "pipeline", "overrides"),
        "pooler": pooled and _alike(one, other, "connector", "target", "overrides"),
    }


def left_out(summary: RunSummary) -> list[CellSummary]:
    """The cells in no answer: they did not pass, were not warm and steady, or their job is unknown."""
    cells = compared_cells(summary)
    asked = any(cell.queries for cell in cells)
    return [cell for cell in cells if not is_final(cell) or (asked and job_of(cell) is None)]


def compared_cells(summary: RunSummary) -> list[CellSummary]:
    """The cells that answers can compare: no re-scales and no constant loads."""
    return [cell for cell in summary.cells if cell.rescale is None and cell.mode not in ("sustain", "faults")]


def is_final(cell: CellSummary) -> bool:
    """Whether its rate may be quoted."""
    return cell.passed and bool(usable_median(cell))


def fastest_trial(cell: CellSummary) -> float | None:
    """The highest rate of any trial of a cell, final or not; None if none was measured."""
    paths = ("fastest_trial", "at_least.figures.records_per_second", "records_per_second.high")
    return most(find(cell, path) for path in paths)


def _rate(cell: CellSummary) -> float:
    return usable_median(cell) or 0.0
