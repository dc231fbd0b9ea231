"""Whether a claim holds in the stored runs: decided on ranges alone, never on an estimate.

A range within the bounds replicates, one outside refutes, and one that crosses a bound does not tell. So more noise can
turn a decision into none, and never the reverse. Published figures may refute their own claim, but replicate none."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import pairwise
from typing import Any

from sinkbench.analysis.words import significant
from sinkbench.claims.models import Arithmetic, Bounds, CellOf, Claim, Failure, Needs, Order, Ratio, Shape
from sinkbench.claims.readings import Range, Stored, Trials, Untold, cell_of, load_of, range_of, ratio_of
from sinkbench.metrics.metric import find
from sinkbench.results import RunSummary

_ONLY_ARITHMETIC = "the published figures agree with each other; no run tests them"


class Outcome(StrEnum):
    REPLICATED = "replicated"
    REFUTED = "refuted here"
    UNTOLD = "cannot be told here"


@dataclass(frozen=True)
class Verdict:
    """What came of a claim: `measured` in words, with ranges; `why`, if it cannot be told; the `run` that was read, and
    the `command` that makes the run that it lacks."""

    claim: Claim
    outcome: Outcome
    measured: tuple[str, ...] = ()
    why: str = ""
    run: str | None = None
    command: str | None = None

    @property
    def row(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found = {"measured": list(self.measured), "run": self.run, "verdict": self.outcome.value, "why": self.why}
        return {**self.claim.model_dump(mode="json", exclude={"shape", "untestable"}), **found, "command": self.command}


@dataclass(frozen=True)
class _Part:
    """One comparison of a shape."""

    outcome: Outcome
    measured: str = ""
    why: str = ""


def verdict(
    claim: Claim, summaries: Sequence[RunSummary], trials: Mapping[str, Trials] | None = None, cores: int | None = None
) -> Verdict:
    """What the runs, the newest first, say of a claim: the newest of its plan that is on what it needs.

    `trials` are those of the runs, by the run; without them, figures that only trials have cannot be told. `cores` are
    those of this machine, if another run on it is to be offered only where it can tell."""
    if claim.shape is None:
        return Verdict(claim, Outcome.UNTOLD, why=claim.untestable or "")
    run, why = run_of(claim, summaries)
    if claim.plan is not None and why:
        here = {**claim.needs.settings, "cpu_count": cores, "topology": {"name": claim.needs.topology}}
        few = "" if cores is None else _lacks(claim.needs, here)
        name, command = None if run is None else run.run, None if few else claim.command
        return Verdict(claim, Outcome.UNTOLD, why=why if run else few or why, run=name, command=command)
    stored = None if run is None else (run, (trials or {}).get(run.run, ()))
    parts = [part for shape in claim.shape for part in _parts(shape, stored)]
    outcomes = {part.outcome for part in parts}
    # All must hold, so one that does not hold decides.
    worst = next(each for each in (Outcome.REFUTED, Outcome.UNTOLD, Outcome.REPLICATED) if each in outcomes)
    if claim.plan is None and worst is Outcome.REPLICATED:
        return Verdict(claim, Outcome.UNTOLD, tuple(part.measured for part in parts), _ONLY_ARITHMETIC)
    whys = "; ".join(dict.fromkeys(part.why for part in parts if part.why and part.outcome is worst))
    measured = tuple(part.measured for part in parts if part.measured)
    return Verdict(claim, worst, measured, whys, None if run is None else run.run)


def decided(found: Range, bounds: Bounds) -> Outcome:
    """Whether a range lies within the bounds, outside, or across one."""
    least, most = bounds.within
    if found.low >= least and found.high <= most:
        return Outcome.REPLICATED
    return Outcome.REFUTED if found.high < least or found.low > most else Outcome.UNTOLD


def run_of(claim: Claim, summaries: Sequence[RunSummary]) -> tuple[RunSummary | None, str]:
    """The newest run of its plan on what the claim needs, with its cells; else the newest, and why it cannot tell."""
    runs = [run for run in summaries if run.plan.name == claim.plan and any(cell.trials for cell in run.cells)]
    if not runs:
        return None, f"no run of plan {claim.plan}"
    lacking = [(run, _lacks(claim.needs, run.environment) or _missing(claim, run)) for run in runs]
    return next((each for each in lacking if not each[1]), lacking[0])


def _lacks(needs: Needs, environment: Mapping[str, object]) -> str:
    cores = environment.get("cpu_count")
    if needs.cores is not None and not (isinstance(cores, int) and cores >= needs.cores):
        return f"too few cores: needs {needs.cores}, found {cores or 'no number of them'}"
    if needs.cores_at_most is not None and not (isinstance(cores, int) and cores <= needs.cores_at_most):
        return f"too many cores: needs {needs.cores_at_most} at most, found {cores or 'no number of them'}"
    for name, wanted in needs.settings.items():
        found = find(environment, "topology.name" if name == "topology" else name)
        if found != wanted:
            return f"needs {name} {wanted}, the run had {found or 'an unknown one'}"
    return ""


def _missing(claim: Claim, run: RunSummary) -> str:
    try:
        for wanted in claim.cells:
            if load_of(run, wanted) is None:
                cell_of(run, wanted)
    except Untold as why:
        return str(why)
    return ""


def _parts(shape: Shape, stored: Stored | None) -> list[_Part]:
    if isinstance(shape, Arithmetic):
        values = [above / below for above, below in shape.quotients]
        return [_told(partial(Range, value, value, value), shape, "as published") for value in values]
    if stored is None:
        return []
    if isinstance(shape, Failure):
        return [_failure(shape, stored[0])]
    if isinstance(shape, Ratio):
        read = partial(ratio_of, stored, figure=shape.figure, per_task=shape.per_task)
        return [_told(partial(read, (cell, shape.to)), shape, _quotient(shape, cell, shape.to)) for cell in shape.of]
    if isinstance(shape, Order):
        # At the factor itself it does not fall.
        more = Bounds(at_least=math.nextafter(shape.by, math.inf))
        return [
            _told(partial(ratio_of, stored, pair, shape.figure), more, _quotient(shape, *pair))
            for pair in pairwise(shape.falling)
        ]
    return [_told(partial(range_of, stored, shape.of, shape.figure), shape, f"{shape.figure} of {shape.of}")]


def _quotient(shape: Ratio | Order, cell: CellOf, to: CellOf) -> str:
    """What is divided: rates, unless the figure is named."""
    per_task = " a task" if isinstance(shape, Ratio) and shape.per_task else ""
    rates = shape.figure == "records_per_second" and not per_task
    return cell.by(to) if rates else f"{shape.figure}{per_task} of {cell.by(to)}"


def _told(read: Callable[[], Range], bounds: Bounds, of: str) -> _Part:
    """What a range `of` something says, and what it must be for the claim to hold."""
    try:
        found = read()
    except Untold as none:
        return _Part(Outcome.UNTOLD, why=str(none))
    value, ends = significant(found.estimate), f"{significant(found.low)}-{significant(found.high)}"
    # What is exact has no range.
    text = f"{of}: {value if found.low == found.high else f'{value} ({ends})'}, must be {bounds}"
    outcome = decided(found, bounds)
    return _Part(outcome, text, "noise" if outcome is Outcome.UNTOLD else _off(found, bounds))


def _off(found: Range, bounds: Bounds) -> str:
    """How far a range is from what was published: `off by a factor of 4.6`; empty if it is within, or 0 is meant."""
    least, most = bounds.within
    pair = (least, found.estimate) if found.high < least else (found.estimate, most) if found.low > most else (0, 1)
    return f"off by a factor of {significant(pair[0] / pair[1])}" if min(pair) > 0 else ""


def _failure(shape: Failure, run: RunSummary) -> _Part:
    try:
        cell = cell_of(run, shape.of)
    except Untold as none:
        return _Part(Outcome.UNTOLD, why=str(none))
    if cell.passed and cell.at_least is None:
        return _Part(Outcome.REFUTED, f"{shape.of} passed")
    wrong = [*cell.faults, *cell.reasons]
    said = " ".join([cell.failure or "", *(reason.text for reason in wrong)]).casefold()
    if shape.code in {reason.code for reason in wrong} and any(each.casefold() in said for each in shape.says or ("",)):
        return _Part(Outcome.REPLICATED, f"{shape.of}: {shape.code}")
    return _Part(Outcome.UNTOLD, f"{shape.of}: {cell.verdict}", "it failed for another reason, or is not final")
