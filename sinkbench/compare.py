"""Two runs compared cell by cell: which became faster or slower, which did not, and of which that cannot be told."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sinkbench.certainty import FEWEST_BLOCKS
from sinkbench.differences import Difference, differences, durability_differences, record_differences
from sinkbench.errors import ResultsError
from sinkbench.kept import KeptRun
from sinkbench.results import CellSummary, Interval
from sinkbench.summarize import valid_by_block
from sinkbench.twosample import ALPHA, holm, p_value, ratio_of_medians, smallest_difference

__all__ = ["Compared", "Comparison", "Gate", "Verdict", "compare", "gate", "percent_of"]

Verdict = Literal["faster", "slower", "no difference found", "too few trials to tell", "not comparable"]


@dataclass(frozen=True)
class Compared:
    """One cell of both runs, or of one of them."""

    name: str
    """The cell's key; of cells that differ in it both, as `postgres/jdbc@3x1 / postgres/jdbc@2x1`."""
    verdict: Verdict
    """Of run B: "slower" means that B is slower than A."""
    why: str = ""
    """The reason, where there must be one: not comparable, too few trials, or an interval that alone says otherwise."""
    a_per_second: float | None = None
    """The median of run A's valid trials, in records per second."""
    b_per_second: float | None = None
    ratio: float | None = None
    """B to A."""
    interval: Interval | None = None
    """Of the ratio."""
    smallest_percent: float | None = None
    """The smallest difference that the trials could have shown; of "no difference found" alone."""
    broken: bool = False
    """Whether it passed in A, and did not in B."""


@dataclass(frozen=True)
class Comparison:
    """Run B compared with run A."""

    a: KeptRun
    b: KeptRun
    differences: list[Difference]
    cells: list[Compared]


@dataclass(frozen=True)
class Gate:
    """Whether B may be slower than it is: `failures` says why not, `remarks` what the answer leaves open."""

    failures: list[str]
    remarks: list[str]


@dataclass(frozen=True)
class _Pair:
    name: str
    a: Sequence[float]
    b: Sequence[float]
    ratio: float
    interval: Interval


def compare(a: KeptRun, b: KeptRun) -> Comparison:
    """Compares run B with run A, in the order of A's cells; those of B alone come last.

    A cell is faster or slower if the test of its trials' ranks says so at 5 % for the whole table (`twosample`), and
    the interval of its ratio leaves out 1, too: so no verdict is at odds with the interval beside it.
    """
    found: list[Compared | _Pair] = []
    for one, other in _pairs(a.summary.cells, b.summary.cells):
        if one is None or other is None:
            (only,) = filter(None, (one, other))
            found.append(Compared(only.cell, "not comparable", f"only run {'A' if other is None else 'B'} has it"))
        else:
            found.append(_looked_at(a, b, one, other))
    verdicts = iter(_judged([each for each in found if isinstance(each, _Pair)]))
    return Comparison(a, b, differences(a, b), [next(verdicts) if isinstance(each, _Pair) else each for each in found])


def percent_of(text: str) -> float:
    """A share as a user writes it, as `5%`, `5` or `2.5 %`; ResultsError if it is not from 0 to below 100."""
    try:
        percent = float(text.strip().removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent < 100:
        raise ResultsError(f"--fail-if-slower {text}: is not a share from 0 % to below 100 %; give one as 5%")
    return percent


def gate(comparison: Comparison, percent: float) -> Gate:
    """Whether run B passes if no cell may be more than so many percent slower than in run A.

    It fails if a cell is slower by more than that and significantly so, if a cell that passed in A does not in B, or
    if nothing could be compared. Remarks name the cells whose trials could not have shown such a difference, and those
    that were not compared while others were.
    """
    slower = [
        f"{cell.name} ({100 * (1 - cell.ratio):.1f} %)"
        for cell in comparison.cells
        if cell.verdict == "slower" and cell.ratio is not None and 100 * (1 - cell.ratio) > percent
    ]
    broken = [cell.name for cell in comparison.cells if cell.broken]
    told = [cell for cell in comparison.cells if cell.verdict in ("faster", "slower", "no difference found")]
    unseen = [
        f"{cell.name} ({cell.smallest_percent:.1f} %)"
        for cell in told
        if cell.smallest_percent is not None and cell.smallest_percent > percent
    ]
    untold = [cell.name for cell in comparison.cells if cell not in told and not cell.broken]
    failures = [
        f"slower by more than {percent:g} %: {', '.join(slower)}" if slower else "",
        f"passed in run A and not in run B: {', '.join(broken)}" if broken else "",
        "" if told else "nothing was compared: no cell of the two runs is comparable and has enough trials",
    ]
    remarks = [
        f"may be slower by {percent:g} % unseen; the smallest difference that shows: {', '.join(unseen)}"
        if unseen
        else "",
        f"not compared, the table says why: {', '.join(untold)}" if told and untold else "",
    ]
    return Gate([*filter(None, failures)], [*filter(None, remarks)])


def _pairs(a: Sequence[CellSummary], b: Sequence[CellSummary]) -> list[tuple[CellSummary | None, CellSummary | None]]:
    """Each cell of A with that of B, None where there is none.

    Cells belong together by their keys; and else, if that tells which, by their label and multiple, so that it can be
    said what else makes them differ: the number of workers, or the rate that was offered.
    """
    by_key = {cell.cell: cell for cell in b}
    keys = {cell.cell for cell in a}
    alike_a, alike_b = (_by_place(cell for cell in run if cell.cell not in keys & by_key.keys()) for run in (a, b))
    pairs: list[tuple[CellSummary | None, CellSummary | None]] = []
    for cell in a:
        other = by_key.get(cell.cell)
        if other is None and len(alike_a[_place(cell)]) == len(alike_b.get(_place(cell), [])) == 1:
            (other,) = alike_b[_place(cell)]
        pairs.append((cell, other))
    taken = {other.cell for _, other in pairs if other is not None}
    return [*pairs, *((None, cell) for cell in b if cell.cell not in taken)]


def _by_place(cells: Iterable[CellSummary]) -> dict[object, list[CellSummary]]:
    found: dict[object, list[CellSummary]] = {}
    for cell in cells:
        found.setdefault(_place(cell), []).append(cell)
    return found


def _place(cell: CellSummary) -> object:
    before = None if cell.rescale is None else cell.rescale.tasks_before / cell.workers
    return cell.label, cell.tasks_per_worker, before


def _looked_at(a: KeptRun, b: KeptRun, one: CellSummary, other: CellSummary) -> Compared | _Pair:
    """A pair to test, or why it is none."""
    name = one.cell if one.cell == other.cell else f"{one.cell} / {other.cell}"
    first, second = (_rates(run, cell) for run, cell in ((a, one), (b, other)))
    bare = Compared(
        name,
        "not comparable",
        a_per_second=_median(one),
        b_per_second=_median(other),
        broken=one.passed and not other.passed,
    )
    reasons = [*_reasons(a, b, one, other)]
    if reasons:
        return replace(bare, why="; ".join(reasons))
    if min([*first, *second], default=1.0) <= 0:
        return replace(bare, why="a trial has a rate of 0, which has no ratio")
    few = [
        f"{len(rates)} valid in run {run}" for run, rates in (("A", first), ("B", second)) if len(rates) < FEWEST_BLOCKS
    ]
    ratio, interval = ratio_of_medians(second, first) if first and second else (None, None)
    if ratio is None or interval is None:
        why = f"{' and '.join(few)}, {FEWEST_BLOCKS} are needed in each"
        return replace(bare, verdict="too few trials to tell", why=why, ratio=ratio)
    return _Pair(name, first, second, ratio, interval)


def _median(cell: CellSummary) -> float | None:
    return None if cell.records_per_second is None else cell.records_per_second.median


def _rates(run: KeptRun, cell: CellSummary) -> list[float]:
    """The valid rates of one cell, in records per second."""
    return list(valid_by_block(trial for trial in run.trials if trial.cell == cell.cell).values())


def _reasons(a: KeptRun, b: KeptRun, one: CellSummary, other: CellSummary) -> list[str]:
    """Why the rates of two cells do not tell which is faster."""
    stacks = [str(run.summary.environment.get("stack")) for run in (a, b)]
    sides = {
        "stack": stacks,
        "workers": [f"{one.workers}", f"{other.workers}"],
        "mode": [one.mode, other.mode],
        "offered records/s": [f"{cell.offered_records_per_second or 0:g}" for cell in (one, other)],
        "pipeline": [one.pipeline, other.pipeline],
        "probes": [_probes(run.plan, cell) for run, cell in ((a, one), (b, other))],
    }
    if one.mode == other.mode == "capacity":
        # It is what the search has found.
        del sides["offered records/s"]
    found = [f"{what} {first} against {second}" for what, (first, second) in sides.items() if first != second]
    found += [f"{each.what} {each.a} against {each.b}" for each in record_differences(a, b)]
    found += [f"durability {each.what} {each.a} against {each.b}" for each in durability_differences(a, b, one.sink)]
    found += [f"run {run}: {cell.verdict}" for run, cell in (("A", one), ("B", other)) if not cell.passed]
    if not found and one.mode == "sustain":
        found = ["under a constant load what is stored is what was offered; compare its lag and its latency"]
    if not found and one.mode == "capacity":
        found = ["a capacity is the outcome of one search, which its trials confirm without telling how it scatters"]
    return found


def _probes(plan: Mapping[str, object], cell: CellSummary) -> str:
    """Whether a cell was looked at while its trials ran: without, its rate is measured in another way."""
    entries = plan.get("pipelines")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("label", entry.get("pipeline")) == cell.label:
            return "on" if entry.get("probes", True) else "off"
    return "on"


def _judged(pairs: Sequence[_Pair]) -> list[Compared]:
    """The verdicts of all pairs that were tested, which depend on how many there are."""
    alone = [p_value(pair.a, pair.b) for pair in pairs]
    corrected = holm(alone)
    # At this level the next p value would have to be to be significant, too.
    left = sum(each > ALPHA for each in corrected)
    return [
        _verdict(pair, p, whole, len(pairs), ALPHA / max(1, left))
        for pair, p, whole in zip(pairs, alone, corrected, strict=True)
    ]


def _verdict(pair: _Pair, alone: float, corrected: float, cells: int, level: float) -> Compared:
    apart = not pair.interval.low <= 1 <= pair.interval.high
    bare = Compared(
        pair.name,
        "faster" if pair.ratio > 1 else "slower",
        "",
        statistics.median(pair.a),
        statistics.median(pair.b),
        pair.ratio,
        pair.interval,
    )
    if apart and corrected <= ALPHA:
        return bare
    smallest = smallest_difference(pair.b, pair.a, pair.interval, level)
    if smallest is None:
        trials = f"{len(pair.a)} and {len(pair.b)} valid trials are too few"
        return replace(bare, verdict="too few trials to tell", why=f"{trials} to test {cells} cells at once")
    why = ""
    if apart and alone <= ALPHA:
        why = f"its interval alone leaves out 1, but with {cells} cells compared that may be chance (p {alone:.2g},"
        why += f" corrected {corrected:.2g})"
    elif apart:
        why = f"its interval leaves out 1, but the test of the trials' ranks does not bear it out (p {alone:.2g})"
    elif corrected <= ALPHA:
        why = f"the trials' ranks differ (p {corrected:.2g}), but the interval of the medians' ratio holds 1"
    return replace(bare, verdict="no difference found", why=why, smallest_percent=100 * smallest)
