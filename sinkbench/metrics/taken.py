"""The trials of a cell: all, the valid ones, and those whose figures are used; and whether its rate is quotable."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from sinkbench.analysis.intervals import spread_of
from sinkbench.analysis.rates import median_known, total_known
from sinkbench.analysis.samples import is_far_ahead
from sinkbench.analysis.words import percent
from sinkbench.errors import INTERRUPTIONS, ReasonCode
from sinkbench.results import Audit, Limit, Reason, Spread, TrialRecord

if TYPE_CHECKING:
    from sinkbench.plan.cells import Cell
    from sinkbench.plan.schedule import CapacitySearch

# Three trials in a row rise by chance in one of six cells, but rarely by this much.
FEWEST_THAT_RISE, RISE = 3, 1.25


def rated(valid: Sequence[TrialRecord]) -> list[TrialRecord]:
    """The valid trials whose rate may be used: warm, or unknown; and not shared, except under a constant load."""
    return [trial for trial in valid if trial.warm is not False and not is_shared(trial)]


def is_shared(trial: TrialRecord) -> bool:
    """Whether others used the workers, the brokers or the sink, so that the pipeline alone may be faster."""
    return bool(trial.others) and trial.mode not in ("sustain", "faults")


def at_least(valid: Sequence[TrialRecord]) -> Reason | None:
    """Why the rate of a cell is not quotable; None if it is. `valid` has its valid trials in the order in which they
    were taken. Its figures are the rate of the `fastest_trial` and, where that is a lower bound, `records_per_second`:
    of trials that still became faster, or were slowed by others, and whose tasks waited for the sink. (A longer load
    would be slower if they did not.)"""
    taken = [trial for trial in valid if trial.records_per_second is not None]
    fastest = max((trial.records_per_second or 0.0 for trial in taken), default=None)

    def reason(code: ReasonCode, text: str, *, faster: bool = True) -> Reason:
        bounded = faster and not any(is_far_ahead(trial.read_ahead_records, trial.records) for trial in taken)
        names = ["fastest_trial", *(["records_per_second"] if bounded else [])]
        return Reason(code=code, text=text, figures={} if fastest is None else dict.fromkeys(names, fastest))

    unknown = [trial for trial in valid if trial.audit is not None and trial.audit.content_unknown]
    if unknown:
        text = f"content not checked: no record was compared with what was sent in {_of(len(unknown), valid)}"
        return reason(ReasonCode.CONTENT_NOT_CHECKED, text, faster=False)
    shared = [trial for trial in taken if is_shared(trial)]
    if 2 * len(shared) > len(taken):
        who = "; ".join(dict.fromkeys(each for trial in shared for each in trial.others))
        return reason(ReasonCode.SHARED, f"not alone in {_of(len(shared), taken)}: {who}")
    alone = [trial for trial in taken if not is_shared(trial)]
    warm = rated(alone)
    if not alone or alone[0].offered_records_per_second is not None:
        return None
    if 2 * len(warm) < len(alone):
        share = max(trial.compiling_share or 0.0 for trial in alone)
        cold = _of(len(alone) - len(warm), alone)
        text = f"still warming: compilers took up to {percent(share)} of the CPU time in {cold}"
        return reason(ReasonCode.NOT_WARM, text)
    rates = [trial.records_per_second or 0.0 for trial in warm]
    rises = all(later > earlier for earlier, later in pairwise(rates))
    if len(rates) >= FEWEST_THAT_RISE and rises and rates[-1] > RISE * rates[0]:
        why = f"still warming: each trial was faster than the one before, {rates[0]:,.0f} to {rates[-1]:,.0f} records/s"
        return reason(ReasonCode.RISING, why)
    unsteady = sum(trial.steady is False for trial in warm)
    if 2 * unsteady > len(warm):
        where = _of(unsteady, warm) if len(warm) > 1 or len(alone) == 1 else "the only one of its trials that was warm"
        return reason(ReasonCode.NOT_STEADY, f"not steady: the rate still changed at the end of {where}", faster=False)
    return None


def _of(count: int, trials: Sequence[TrialRecord]) -> str:
    return f"{count} of {len(trials)} trials" if len(trials) > 1 else "its only trial"


@dataclass(frozen=True, eq=False)
class Taken:
    """The trials of a cell and other input of its figures. `with_pilots` may have lost records: also pilots and the
    steps of a search. `run` has each cell of the run by key."""

    cell: "Cell"
    with_pilots: Sequence[TrialRecord]
    run: "Mapping[str, Taken]"
    search: "CapacitySearch | None" = None
    limits: Sequence[Limit] = ()

    @cached_property
    def capacity(self) -> float | None:
        """In records per second; None if there was no search, or it found none."""
        found = None if self.search is None else self.search.capacity
        return None if found is None else round(found, 1)

    @cached_property
    def all_trials(self) -> Sequence[TrialRecord]:
        return [trial for trial in self.with_pilots if not trial.pilot]

    @cached_property
    def trials(self) -> Sequence[TrialRecord]:
        """Those of `all_trials` that count, valid or not: of a capacity, those that confirmed it."""
        if self.search is None:
            return self.all_trials
        return [trial for trial in self.all_trials if trial.offered_records_per_second == self.capacity]

    @cached_property
    def valid(self) -> Sequence[TrialRecord]:
        return [trial for trial in self.trials if not reasons_of(trial)]

    @cached_property
    def early(self) -> Reason | None:
        """Why the cell's rate is not quotable; None if it is."""
        return at_least(self.valid)

    @cached_property
    def used(self) -> Sequence[TrialRecord]:
        """The trials of the rate that is shown: the valid ones, without single ones that were not warm; of a cell
        whose rate is not quotable the fastest, so that other figures are those of the same trial."""
        if self.early is None:
            return rated(self.valid)
        return sorted(self.valid, key=lambda trial: trial.records_per_second or 0.0)[-1:]

    @cached_property
    def audited(self) -> Sequence[TrialRecord]:
        """The trials, and others of the cell whose audit found something."""
        more = [each for each in self.with_pilots if each.audit and not each.audit.clean and each not in self.trials]
        return [*self.trials, *more]

    @cached_property
    def audit(self) -> Audit | None:
        return sum_of(self.audited)

    @cached_property
    def median(self) -> float | None:
        """The quotable rate in records per second; of a capacity, the result of the search."""
        known = median_known(trial.records_per_second for trial in self.used)
        if known is None or self.early is not None:
            return None
        return known if self.capacity is None else self.capacity

    @cached_property
    def rates(self) -> dict[int, float]:
        return {each.block: each.records_per_second or 0.0 for each in self.used} if self.early is None else {}

    def spread(self, values: Iterable[float | None]) -> Spread | None:
        """A figure over the used trials; None if one of them lacks it."""
        found = dict(zip((trial.block for trial in self.used), values, strict=True))
        known = {block: value for block, value in found.items() if value is not None}
        return spread_of(known) if len(known) == len(found) else None


def reasons_of(trial: TrialRecord) -> list[Reason]:
    # After an injected fault the rates are those of `recovery`.
    if trial.reasons or trial.records_per_second is not None or trial.recovery is not None:
        return trial.reasons
    return [Reason(code=ReasonCode.NO_RATE, text="no rate could be measured")]


def was_interrupted(trial: TrialRecord) -> bool:
    """Whether a service died or was unreachable in a trial, so that its tasks may have restarted."""
    return any(reason.code in INTERRUPTIONS for reason in trial.reasons)


def sum_of(trials: Iterable[TrialRecord]) -> Audit | None:
    done = [trial.audit for trial in trials if trial.audit is not None]
    counts = {name: [getattr(audit, name) for audit in done] for name in Audit.model_fields}
    return Audit.model_validate({name: total_known(each) for name, each in counts.items()}) if done else None


def quotable(trials: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The trials of one cell whose figures may be used; none if the cell was not warm and steady."""
    valid = [trial for trial in trials if not (trial.pilot or reasons_of(trial))]
    return rated(valid) if at_least(valid) is None else []


def valid_by_block(trials: Iterable[TrialRecord]) -> dict[int, float]:
    """Rates of one cell's `quotable` trials in records per second, by block."""
    return {trial.block: trial.records_per_second or 0.0 for trial in quotable(trials)}
