"""Two runs compared cell by cell."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from sinkbench.analysis.intervals import FEWEST_BLOCKS
from sinkbench.analysis.twosample import ALPHA, holm, p_value, ratio_of_medians, smallest_difference
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
        verdict: on run B: "slower" than A, "more CPU" for the same records.
        why: why it is not comparable, has too few trials, or only its interval shows a difference; for "cannot tell",
            what else can explain the difference.
        a, b: medians of valid trials: records per second, CPU seconds per million records, or bytes.
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
    """Run B compared with run A; `cells` by rates, `costs` by CPU time, `memory` by peak bytes, `disk` by bytes per
    stored record. `differences` begins with what disturbed one run more than the other."""

    a: StoredRun
    b: StoredRun
    differences: list[Difference]
    cells: list[Compared]
    costs: list[Compared]
    memory: list[Compared] = field(default_factory=list)
    disk: list[Compared] = field(default_factory=list)


@dataclass(frozen=True)
class _Ruler:
    """A figure by which two cells are compared; `of_loads` allows constant loads."""

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
    """The verdicts that a disturbance of one run can explain, with its text."""


def compare(a: StoredRun, b: StoredRun) -> Comparison:
    """Compares run B with run A, in the order of A's cells; those only in B come last. A cell differs, by its rate
    or CPU time, if the rank test of its trials is significant at 5 % for the whole table (`twosample`) and the
    interval of its ratio excludes 1, so that no verdict contradicts its interval."""
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


def _pairs(a: Sequence[CellSummary], b: Sequence[CellSummary]) -> list[tuple[CellSummary | None, CellSummary | None]]:
    """Each cell of A with that of B, by keys, else by label and multiple if unique, so that other differences
    (workers, offered rate) can be reported; None if there is none."""
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
    """The verdicts that these disturbances can explain, with their text."""
    sides: dict[Verdict, list[str]] = {}
    for each in found:
        sides.setdefault("slower" if each.more_in_b else "faster", []).append(each.in_words)
    return {verdict: "; ".join(words) for verdict, words in sides.items()}


def _taken(run: StoredRun, cell: CellSummary) -> list[TrialRecord]:
    return [trial for trial in run.trials if trial.cell == cell.cell and not trial.pilot and not trial.reasons]


def _values(ruler: _Ruler, run: StoredRun, cell: CellSummary) -> list[float]:
    trials = quotable(trial for trial in run.trials if trial.cell == cell.cell)
    return [value for trial in trials if (value := ruler.of_trial(trial)) is not None]


def _of_loads(cell: CellSummary) -> list[str]:
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
        # A result of the search.
        del sides["offered records/s"]
    found = [f"{what} {first} against {second}" for what, (first, second) in sides.items() if first != second]
    found += [f"{each.what} {each.a} against {each.b}" for each in record_differences(a, b)]
    found += [f"durability {each.what} {each.a} against {each.b}" for each in durability_differences(a, b, one, other)]
    found += [f"run {run}: {cell.verdict}" for run, cell in (("A", one), ("B", other)) if not cell.passed]
    found += [f"run {name}: {cell.at_least.text}" for name, cell in (("A", one), ("B", other)) if cell.at_least]
    return found


def _probes(plan: Mapping[str, object], cell: CellSummary) -> str:
    """Whether a cell had probes: without them its rate is measured differently."""
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
