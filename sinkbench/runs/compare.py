"""Two runs compared cell by cell."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from sinkbench.analysis.intervals import FEWEST_BLOCKS
from sinkbench.analysis.twosample import ALPHA, holm, p_value, ratio_of_medians, smallest_difference
from sinkbench.errors import ResultsError
from sinkbench.metrics.cpu import total_cpu_seconds
from sinkbench.metrics.taken import quotable
from sinkbench.results import CellSummary, Interval, TrialRecord
from sinkbench.runs.differences import Difference, differences, durability_differences, record_differences
from sinkbench.runs.disturbances import Disturbance, disturbances
from sinkbench.runs.reader import StoredRun

Verdict = Literal[
    "faster",
    "slower",
    "less CPU",
    "more CPU",
    "smaller",
    "larger",
    "no difference found",
    "cannot tell",
    "too few trials to tell",
    "not comparable",
]


@dataclass(frozen=True)
class Compared:
    """A cell of both runs, or of one.

    Attributes:
        name: its key; both keys if they differ, as `postgres/jdbc@3x1 / postgres/jdbc@2x1`.
        verdict: of run B: "slower" means slower than A, "more CPU" that it takes more CPU time for the same records.
        why: the reason if the cell is not comparable or has too few trials, or if its interval alone says otherwise; of
            "cannot tell", what else can explain that the two differ.
        a, b: the median of the run's valid trials: records per second, CPU seconds per million records, or bytes.
        ratio, interval: of B to A.
        smallest_percent: the smallest difference that the trials could have shown; only if none was found.
        broken: whether it passed in A, and not in B.
    """

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
    """Run B compared with run A: `cells` by their rates, `costs` by the CPU time that they take.

    `differences` begins with what disturbed one run more than the other.
    `memory` compares the most bytes that the services of a cell's path held, `disk` the bytes of a stored record.
    """

    a: StoredRun
    b: StoredRun
    differences: list[Difference]
    cells: list[Compared]
    costs: list[Compared]
    memory: list[Compared] = field(default_factory=list)
    disk: list[Compared] = field(default_factory=list)


@dataclass(frozen=True)
class Gate:
    """Why B does not pass; what is `inconclusive`, since a disturbance can explain it; and `remarks` on the rest."""

    failures: list[str]
    remarks: list[str]
    inconclusive: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Ruler:
    """What two cells are compared by.

    Attributes:
        of_trial: what a trial measured; None if it did not.
        more, less: the verdict if that is more, or less, in run B.
        of_loads: whether it can be compared under a load that was set from outside.
        unseen: what is said of a run that did not measure it in a cell's valid trials.
    """

    of_trial: Callable[[TrialRecord], float | None]
    more: Verdict
    less: Verdict
    of_loads: bool
    unseen: str = ""


RATE = _Ruler(lambda trial: trial.records_per_second, "faster", "slower", of_loads=False)
CPU = _Ruler(total_cpu_seconds, "more CPU", "less CPU", True, "the CPU time of a service was not seen")
MEMORY = _Ruler(
    lambda trial: trial.total_peak_memory_bytes, "larger", "smaller", True, "the memory of a service was not seen"
)
DISK = _Ruler(
    lambda trial: trial.disk_bytes_per_record, "larger", "smaller", True, "the bytes on disk were not measured"
)


@dataclass(frozen=True)
class _Pair:
    ruler: _Ruler
    name: str
    a: Sequence[float]
    b: Sequence[float]
    ratio: float
    interval: Interval
    disturbed: Mapping[Verdict, str] = field(default_factory=dict)
    """Which verdicts can be explained by what disturbed one of the runs, and that in words."""


def compare(a: StoredRun, b: StoredRun) -> Comparison:
    """Compares run B with run A, in the order of A's cells; those of B alone come last.

    A cell differs, by its rate or by its CPU time, if the test of its trials' ranks says so at 5 % for the whole table
    (`twosample`) and the interval of its ratio leaves out 1, so that no verdict contradicts its interval.
    """
    found = [_measured(ruler, a, b) for ruler in (RATE, CPU, MEMORY, DISK)]
    pairs = ((one, other) for one, other in _pairs(a.summary.cells, b.summary.cells) if one and other)
    disturbed = [
        Difference(f"{_name(one, other)} {each.what}", each.a, each.b)
        for one, other in pairs
        for each in _disturbances(a, b, one, other)
    ]
    return Comparison(a, b, [*disturbed, *differences(a, b)], *found)


def _measured(ruler: _Ruler, a: StoredRun, b: StoredRun) -> list[Compared]:
    found: list[Compared | _Pair] = []
    for one, other in _pairs(a.summary.cells, b.summary.cells):
        if one is None or other is None:
            (only,) = filter(None, (one, other))
            found.append(Compared(only.cell, "not comparable", f"only run {'A' if other is None else 'B'} has it"))
        else:
            found.append(_looked_at(ruler, a, b, one, other))
    verdicts = iter(_judged([each for each in found if isinstance(each, _Pair)]))
    return [next(verdicts) if isinstance(each, _Pair) else each for each in found]


def percent_of(text: str, option: str) -> float:
    """The percent in `5%`, `5` or `2.5 %`, given by that option; ResultsError if not from 0 to below 100."""
    try:
        percent = float(text.strip().removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent < 100:
        raise ResultsError(f"{option} {text}: is not a share from 0 % to below 100 %; give one as 5%")
    return percent


def gate(comparison: Comparison, slower: float | None, more_cpu: float | None = None) -> Gate:
    """Whether run B passes if no cell may be N percent slower, or take more CPU time, than in run A; None: any.

    It fails if a cell is slower, or takes more CPU time, by more and significantly so, if one that passed in A does
    not in B, or if nothing could be compared. It is inconclusive for a cell that is slower by more where a disturbance
    can explain it. Remarks name cells whose trials could not have shown such a difference, and those not compared.
    """
    broken = [cell.name for cell in comparison.cells if cell.broken]
    whole = Gate(_lines({"passed in run A and not in run B": broken}), [])
    for cells, word, percent in ((comparison.cells, "slower", slower), (comparison.costs, "more CPU", more_cpu)):
        if percent is not None:
            found = _gate(cells, word, percent)
            whole = Gate(
                [*found.failures, *whole.failures],
                [*whole.remarks, *found.remarks],
                [*whole.inconclusive, *found.inconclusive],
            )
    return whole


def _gate(cells: Sequence[Compared], word: str, percent: float) -> Gate:
    worse = [
        f"{cell.name} ({change:.1f} %)"
        for cell in cells
        if cell.verdict == word and cell.ratio is not None and (change := 100 * abs(1 - cell.ratio)) > percent
    ]
    excused = [
        f"{cell.name} ({100 * abs(1 - cell.ratio):.1f} %)"
        for cell in cells
        if cell.verdict == "cannot tell" and cell.ratio is not None and 1 - cell.ratio > percent / 100
    ]
    told = [cell for cell in cells if cell.verdict not in ("cannot tell", "too few trials to tell", "not comparable")]
    unseen = [
        f"{cell.name} ({cell.smallest_percent:.1f} %)"
        for cell in told
        if cell.smallest_percent is not None and cell.smallest_percent > percent
    ]
    # What is excused is named on its own.
    inconclusive = [
        cell.name for cell in cells if cell not in told and not cell.broken and cell.verdict != "cannot tell"
    ]
    disturbed = f"cannot tell: {word} by more than {percent:g} %, which a disturbance can explain; run it again"
    failures = _lines({f"{word} by more than {percent:g} %": worse})
    if not told and not excused:
        failures.append(f"nothing was compared: no cell can be told {word}, as none is comparable with enough trials")
    may_be_worse = f"may be {word} by {percent:g} % unseen; the smallest difference that shows"
    remarks = _lines({may_be_worse: unseen, "not compared, the table says why": inconclusive if told else []})
    return Gate(failures, remarks, _lines({disturbed: excused}))


def _lines(cells: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each thing that is said of at least one cell."""
    return [f"{what}: {', '.join(those)}" for what, those in cells.items() if those]


def _pairs(a: Sequence[CellSummary], b: Sequence[CellSummary]) -> list[tuple[CellSummary | None, CellSummary | None]]:
    """Each cell of A with that of B; None if there is none.

    Cells are paired by their keys, else by label and multiple if that is unique, so that the other differences can be
    told: the number of workers, or the rate that was offered.
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
    return cell.label, cell.tasks_per_worker, before, cell.fault


def _name(one: CellSummary, other: CellSummary) -> str:
    return one.cell if one.cell == other.cell else f"{one.cell} / {other.cell}"


def _looked_at(ruler: _Ruler, a: StoredRun, b: StoredRun, one: CellSummary, other: CellSummary) -> Compared | _Pair:
    """A pair to test, or why it cannot be tested."""
    name = _name(one, other)
    first, second = (_values(ruler, run, cell) for run, cell in ((a, one), (b, other)))
    broken = one.passed and not other.passed
    before, after = (statistics.median(values) if values else None for values in (first, second))
    bare = Compared(name, "not comparable", "", before, after, broken=broken)
    reasons = _reasons(a, b, one, other)
    if not reasons and not (ruler.of_loads and one.mode == "sustain"):
        reasons = _of_loads(one)
    sides = (("A", first, _taken(a, one)), ("B", second, _taken(b, other)))
    unseen = [run for run, values, taken in sides if taken and not values]
    if not reasons and ruler.unseen and unseen:
        reasons = [f"{ruler.unseen} in run {' and '.join(unseen)}"]
    if reasons:
        return replace(bare, why="; ".join(reasons))
    if min([*first, *second], default=1.0) <= 0:
        return replace(bare, why="a trial measured 0, which has no ratio")
    few = [
        f"{len(rates)} valid in run {run}" for run, rates in (("A", first), ("B", second)) if len(rates) < FEWEST_BLOCKS
    ]
    ratio, interval = ratio_of_medians(second, first) if first and second else (None, None)
    if ratio is None or interval is None:
        why = f"{' and '.join(few)}, {FEWEST_BLOCKS} are needed in each"
        return replace(bare, verdict="too few trials to tell", why=why, ratio=ratio)
    explained = _explained(_disturbances(a, b, one, other)) if ruler is RATE else {}
    return _Pair(ruler, name, first, second, ratio, interval, explained)


def _disturbances(a: StoredRun, b: StoredRun, one: CellSummary, other: CellSummary) -> list[Disturbance]:
    cores = b.summary.environment.get("cpu_count")
    return disturbances(_taken(a, one), _taken(b, other), cores if isinstance(cores, int | float) else None)


def _explained(found: Sequence[Disturbance]) -> dict[Verdict, str]:
    """Which verdicts these disturbances can explain, and they in words."""
    sides: dict[Verdict, list[str]] = {}
    for each in found:
        sides.setdefault("slower" if each.more_in_b else "faster", []).append(each.in_words)
    return {verdict: "; ".join(words) for verdict, words in sides.items()}


def _taken(run: StoredRun, cell: CellSummary) -> list[TrialRecord]:
    """The valid trials that a run has of a cell."""
    return [trial for trial in run.trials if trial.cell == cell.cell and not trial.pilot and not trial.reasons]


def _values(ruler: _Ruler, run: StoredRun, cell: CellSummary) -> list[float]:
    trials = quotable(trial for trial in run.trials if trial.cell == cell.cell)
    return [value for trial in trials if (value := ruler.of_trial(trial)) is not None]


def _of_loads(cell: CellSummary) -> list[str]:
    """Why the rate of a cell cannot be compared in its mode."""
    if cell.mode == "faults":
        return ["where something was broken, compare what became of it: the table of `sinkbench report`"]
    if cell.mode == "sustain":
        return ["under a constant load what is stored is what was offered; compare its lag and its latency"]
    if cell.mode == "capacity":
        return ["a capacity is the outcome of one search, which its trials confirm without telling how it scatters"]
    return []


def _reasons(a: StoredRun, b: StoredRun, one: CellSummary, other: CellSummary) -> list[str]:
    stacks = [str(run.summary.environment.get("stack")) for run in (a, b)]
    sides = {
        "stack": stacks,
        "workers": [f"{one.workers}", f"{other.workers}"],
        "mode": [one.mode, other.mode],
        "offered records/s": [f"{cell.offered_records_per_second or 0:g}" for cell in (one, other)],
        "backlog": [f"{cell.backlog_records or 0}" for cell in (one, other)],
        "pipeline": [one.pipeline, other.pipeline],
        "form": [one.form, other.form],
        "acks": [f"{cell.acks}" for cell in (one, other)],
        "probes": [_probes(run.plan, cell) for run, cell in ((a, one), (b, other))],
    }
    if one.mode == other.mode == "capacity":
        # The search found it.
        del sides["offered records/s"]
    found = [f"{what} {first} against {second}" for what, (first, second) in sides.items() if first != second]
    found += [f"{each.what} {each.a} against {each.b}" for each in record_differences(a, b)]
    found += [f"durability {each.what} {each.a} against {each.b}" for each in durability_differences(a, b, one, other)]
    found += [f"run {run}: {cell.verdict}" for run, cell in (("A", one), ("B", other)) if not cell.passed]
    found += [f"run {name}: {cell.at_least.text}" for name, cell in (("A", one), ("B", other)) if cell.at_least]
    return found


def _probes(plan: Mapping[str, object], cell: CellSummary) -> str:
    """Whether a cell had probes: without, its rate is measured in another way."""
    entries = plan.get("pipelines")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("label", entry.get("pipeline")) == cell.label:
            return "on" if entry.get("probes", True) else "off"
    return "on"


def _judged(pairs: Sequence[_Pair]) -> list[Compared]:
    """The verdicts of all pairs, which depend on their number."""
    alone = [p_value(pair.a, pair.b) for pair in pairs]
    corrected = holm(alone)
    # The level at which the next p value would be significant.
    left = sum(each > ALPHA for each in corrected)
    return [
        _verdict(pair, p, whole, len(pairs), ALPHA / max(1, left))
        for pair, p, whole in zip(pairs, alone, corrected, strict=True)
    ]


def _verdict(pair: _Pair, alone: float, corrected: float, cells: int, level: float) -> Compared:
    apart = not pair.interval.low <= 1 <= pair.interval.high
    verdict = pair.ruler.more if pair.ratio > 1 else pair.ruler.less
    medians = statistics.median(pair.a), statistics.median(pair.b)
    bare = Compared(pair.name, verdict, "", *medians, pair.ratio, pair.interval)
    if apart and corrected <= ALPHA:
        if verdict in pair.disturbed:
            return replace(bare, verdict="cannot tell", why=f"{pair.disturbed[verdict]}, which can explain {verdict}")
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
    why = "; ".join(
        filter(None, [why, *(f"{words}, which may hide a difference" for words in pair.disturbed.values())])
    )
    return replace(bare, verdict="no difference found", why=why, smallest_percent=100 * smallest)
