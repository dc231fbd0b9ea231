"""Two runs compared cell by cell."""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from sinkbench.analysis import intervals
from sinkbench.analysis.rates import median_known
from sinkbench.analysis.samples import MUCH_FOREIGN
from sinkbench.analysis.stalls import MUCH_STALLED
from sinkbench.analysis.words import percent, significant
from sinkbench.metrics.cpu import total_cpu_seconds
from sinkbench.metrics.metric import find
from sinkbench.metrics.taken import quotable
from sinkbench.results import CellSummary, Interval, TrialRecord
from sinkbench.runs.differences import Difference, differences, durability_differences, pipelines, record_differences
from sinkbench.runs.reader import StoredRun

Differs = Literal["faster", "slower", "less CPU", "more CPU", "smaller", "larger", "shorter", "longer"]
Verdict = Literal[Differs, "no difference found", "cannot tell", "too few trials to tell", "not comparable"]


@dataclass(frozen=True)
class Compared:
    """A cell of both runs, or of one: the verdict on run B and, in `why`, what stands behind or against it; `a` and `b`
    are medians of valid trials. `smallest_percent` is the smallest difference that the trials could have shown, if none
    was found; `broken` says whether the cell passed in A, and not in B."""

    name: str
    verdict: Verdict
    why: str = ""
    a: float | None = None
    b: float | None = None
    ratio: float | None = None
    interval: Interval | None = None
    smallest_percent: float | None = None
    broken: bool = False


@dataclass(frozen=True)
class Comparison:
    """Run B compared with run A: the cells by each of `FIGURES`, without figures that neither run has. `differences`
    begins with what disturbed one run more than the other."""

    a: StoredRun
    b: StoredRun
    differences: list[Difference]
    by: Mapping[str, list[Compared]]

    @property
    def cells(self) -> list[Compared]:
        return self.by[RATE]

    @property
    def undecided(self) -> bool:
        """Whether no cell has a verdict, and some have too few trials for one."""
        found = {cell.verdict for cells in self.by.values() for cell in cells}
        return TOO_FEW in found and not found - {TOO_FEW, "not comparable"}


@dataclass(frozen=True)
class _Figure:
    """A figure by which two cells are compared; `loads` says whether constant loads are: only they, too, or not."""

    of_trial: Callable[[TrialRecord], float | None]
    more: Verdict
    less: Verdict
    loads: Literal["only", "too", "not"] = "too"
    unseen: str = ""


TOO_FEW: Verdict = "too few trials to tell"
RATE, CPU = "records/s", "CPU s per million"
FIGURES = {
    RATE: _Figure(lambda trial: trial.records_per_second, "faster", "slower", "not"),
    CPU: _Figure(total_cpu_seconds, "more CPU", "less CPU", unseen="the CPU time of a service was not seen"),
    "peak MB": _Figure(
        lambda trial: None if (found := trial.total_peak_memory_bytes) is None else found / 1e6,
        *("larger", "smaller"),
        unseen="the memory was not seen",
    ),
    "bytes/record": _Figure(
        lambda trial: trial.disk_bytes_per_record, "larger", "smaller", unseen="the bytes on disk were not measured"
    ),
    **{
        f"{name} ms": _Figure(
            partial(find, path=f"latency_ms.{name}"), "longer", "shorter", "only", "too few records for it"
        )
        for name in ("p50", "p95", "p99")
    },
}


# Why rates of a mode are not compared.
_NO_RATES = {
    "faults": "of runs with faults compare the tables of `sinkbench show`",
    "sustain": "under a constant load the rate is the offered one; compare CPU time and latency",
    "capacity": "a capacity is the outcome of one search, without a range",
}


@dataclass(frozen=True)
class _Pair:
    figure: _Figure
    name: str
    a: Sequence[float]
    b: Sequence[float]
    ratio: float
    interval: Interval
    disturbed: Mapping[Verdict, str] = field(default_factory=dict)
    """The verdicts that a disturbance of one run can explain, with its text."""
    paired: bool = False


def compare(a: StoredRun, b: StoredRun) -> Comparison:
    """Compares run B with run A, in the order of A's cells; those only in B come last. A cell differs if the rank test
    of its trials is significant at 5 % for its whole table (`intervals`), and the interval of its ratio excludes 1.
    Cells of different arms are of one run: their trials are compared block by block."""
    pairs = [(one, other) for one, other in _pairs(a, b) if one and other]
    disturbed = [each for one, other in pairs for each, *_ in _disturbances(a, b, one, other)]
    by = {name: _measured(figure, a, b) for name, figure in FIGURES.items()}
    known = {
        name: cells
        for name, cells in by.items()
        if name == RATE or any(cell.a is not None or cell.b is not None for cell in cells)
    }
    return Comparison(a, b, [*disturbed, *differences(a, b)], known)


def _measured(figure: _Figure, a: StoredRun, b: StoredRun) -> list[Compared]:
    found: list[Compared | _Pair] = []
    for one, other in _pairs(a, b):
        if one and other:
            found.append(_looked_at(figure, a, b, one, other))
        elif only := one or other:
            found.append(Compared(only.cell, "not comparable", f"only run {'A' if one else 'B'} has it"))
    pairs = [each for each in found if isinstance(each, _Pair)]
    alone = [(intervals.paired_p_value if pair.paired else intervals.p_value)(pair.a, pair.b) for pair in pairs]
    corrected = intervals.holm(alone)
    # The level at which the next p value would be significant.
    level = intervals.ALPHA / max(1, sum(each > intervals.ALPHA for each in corrected))
    verdicts = (_verdict(*each, len(pairs), level) for each in zip(pairs, alone, corrected, strict=True))
    return [next(verdicts) if isinstance(each, _Pair) else each for each in found]


def _pairs(a: StoredRun, b: StoredRun) -> list[tuple[CellSummary | None, CellSummary | None]]:
    """Each cell of A with that of the same key of B, then the rest of B; None if there is none."""
    first, second = ({cell.cell: cell for cell in run.summary.cells} for run in (a, b))
    return [(first.get(key), second.get(key)) for key in dict.fromkeys([*first, *second])]


def _looked_at(figure: _Figure, a: StoredRun, b: StoredRun, one: CellSummary, other: CellSummary) -> Compared | _Pair:
    name = one.cell
    found = _values(figure, a, one), _values(figure, b, other)
    first, second = ([value for _, value in values] for values in found)
    broken = one.passed and not other.passed
    before, after = (statistics.median(values) if values else None for values in (first, second))
    bare = Compared(name, "not comparable", "", before, after, broken=broken)
    reasons = _reasons(a, b, one, other)
    if not reasons and not (figure.loads != "not" and one.mode == "sustain"):
        reasons = [_NO_RATES[one.mode]] if one.mode in _NO_RATES else []
    sides = (("A", first, _taken(a, one)), ("B", second, _taken(b, other)))
    unseen = [run for run, values, taken in sides if taken and not values]
    if not reasons and figure.unseen and unseen:
        reasons = [f"{figure.unseen} in run {' and '.join(unseen)}"]
    if reasons:
        return replace(bare, why="; ".join(reasons))
    if min([*first, *second], default=1.0) <= 0:
        return replace(bare, why="a trial measured 0, which has no ratio")
    paired = one.arm != other.arm
    if paired:
        shared = sorted(dict(found[0]).keys() & dict(found[1]).keys())
        first, second = ([dict(values)[block] for block in shared] for values in found)
    fewest = intervals.FEWEST_PAIRS if paired else intervals.FEWEST_BLOCKS
    few = [f"{len(rates)} valid in run {run}" for run, rates in (("A", first), ("B", second)) if len(rates) < fewest]
    ratio, interval = _ratio(first, second, paired=paired) if first and second else (None, None)
    if ratio is None or interval is None or few:
        why = f"{' and '.join(few)}, {fewest} are needed in each{_ranges(first, second)}"
        return replace(bare, verdict=TOO_FEW, why=why, ratio=ratio)
    explained: dict[Verdict, str] = {}
    for _, words, verdict in _disturbances(a, b, one, other) if figure.more == "faster" else ():
        explained[verdict] = "; ".join(filter(None, [explained.get(verdict), words]))
    return _Pair(figure, name, first, second, ratio, interval, explained, paired)


def _ratio(a: Sequence[float], b: Sequence[float], *, paired: bool) -> tuple[float | None, Interval | None]:
    if not paired:
        return intervals.ratio_of_medians(b, a)
    found = intervals.ratio_by_block("", *(dict(enumerate(values)) for values in (b, a)))
    return (None, None) if found is None else (found.estimate, found.interval)


def _ranges(a: Sequence[float], b: Sequence[float]) -> str:
    """Whether the ranges of few trials lie apart; empty if a side has none."""
    if not a or not b:
        return ""
    are_apart = max(b) < min(a) or max(a) < min(b)
    return f"; the ranges {'lie apart' if are_apart else 'overlap'}: A {_span(a)}, B {_span(b)}"


def _span(values: Sequence[float]) -> str:
    form = ",.0f" if max(values) >= 100 else ".1f"
    return f"{min(values):{form}} to {max(values):{form}}"


def _taken(run: StoredRun, cell: CellSummary) -> list[TrialRecord]:
    return [trial for trial in run.trials if trial.cell == cell.cell and not trial.pilot and not trial.reasons]


def _values(figure: _Figure, run: StoredRun, cell: CellSummary) -> list[tuple[int, float]]:
    """The values of a cell's trials with their blocks; the trials of a search share one."""
    trials = quotable(trial for trial in run.trials if trial.cell == cell.cell)
    return [(trial.block, value) for trial in trials if (value := figure.of_trial(trial)) is not None]


def _reasons(a: StoredRun, b: StoredRun, one: CellSummary, other: CellSummary) -> list[str]:
    sides: dict[str, Sequence[object]] = {
        "stack": [str(run.summary.environment.get("stack")) for run in (a, b)],
        "mode": [one.mode, other.mode],
        "pipeline": [one.pipeline, other.pipeline],
        "form": [one.form, other.form],
        "acks": [f"{cell.acks}" for cell in (one, other)],
        "probes": [find(pipelines(run.plan).get(one.label), "probes") is not False for run in (a, b)],
    }
    found = [f"{what} {first} against {second}" for what, (first, second) in sides.items() if first != second]
    found += [f"{each.what} {each.a} against {each.b}" for each in record_differences(a, b)]
    found += [f"durability {each.what} {each.a} against {each.b}" for each in durability_differences(a, b, one, other)]
    found += [f"run {run}: {cell.verdict}" for run, cell in (("A", one), ("B", other)) if not cell.passed]
    found += [f"run {name}: {cell.at_least.text}" for name, cell in (("A", one), ("B", other)) if cell.at_least]
    return found


def _verdict(pair: _Pair, alone: float, corrected: float, cells: int, level: float) -> Compared:
    apart = not pair.interval.low <= 1 <= pair.interval.high
    verdict = pair.figure.more if pair.ratio > 1 else pair.figure.less
    medians = statistics.median(pair.a), statistics.median(pair.b)
    bare = Compared(pair.name, verdict, "", *medians, pair.ratio, pair.interval)
    if apart and corrected <= intervals.ALPHA:
        if verdict in pair.disturbed:
            return replace(bare, verdict="cannot tell", why=f"{pair.disturbed[verdict]}, which can explain {verdict}")
        return bare
    smallest = intervals.smallest_difference(pair.b, pair.a, pair.interval, level, paired=pair.paired)
    if smallest is None:
        trials = f"{len(pair.a)} and {len(pair.b)} valid trials are too few"
        return replace(bare, verdict=TOO_FEW, why=f"{trials} to test {cells} cells at once")
    why = ""
    if apart or corrected <= intervals.ALPHA:
        values = f"p {significant(alone, 2)}, corrected {significant(corrected, 2)}"
        why = f"interval and test of {cells} cells at once do not agree ({values})"
    why = "; ".join(filter(None, [why, *(f"{text}, which may hide a difference" for text in pair.disturbed.values())]))
    return replace(bare, verdict="no difference found", why=why, smallest_percent=100 * smallest)


def _disturbances(
    a: StoredRun, b: StoredRun, one: CellSummary, other: CellSummary
) -> Iterator[tuple[Difference, str, Verdict]]:
    """Large differences in disturbance of a cell's valid trials, by foreign load (if the machine's cores are known) or
    stalls, with the verdict that each can explain, as `other load took 0.0 cores in run A, 0.5 cores in run B`."""
    cores = b.summary.environment.get("cpu_count")
    much = MUCH_FOREIGN * cores if isinstance(cores, int | float) else math.inf
    kinds: Sequence[tuple[str, str, Callable[[TrialRecord], float | None], float, Callable[[float], str]]] = (
        ("foreign load", "other load took", lambda trial: trial.foreign_cores, much, "{:.1f} cores".format),
        ("stolen from it", "a hypervisor took", lambda trial: trial.stolen_cores, much, "{:.1f} cores".format),
        ("no new record seen, of a drain", "no new record was seen for", _stalled, MUCH_STALLED, percent),
    )
    for what, sentence, of_trial, most, shown in kinds:
        before, after = (median_known(map(of_trial, _taken(run, cell))) for run, cell in ((a, one), (b, other)))
        if before is not None and after is not None and abs(after - before) > most:
            words = f"{sentence} {shown(before)} in run A, {shown(after)} in run B"
            found = Difference(f"{one.cell} {what}", shown(before), shown(after))
            yield found, words, "slower" if after > before else "faster"


def _stalled(trial: TrialRecord) -> float | None:
    """The share of a drain that was in stalls; None if stalls were not searched for."""
    if trial.stalled_seconds is None or not trial.window_seconds:
        return None
    return trial.stalled_seconds / trial.window_seconds
