"""Whether a cell's rate is quotable: its trials were warm, steady, not shared, not rising one after the other, and
passed the content check if there was one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sinkbench.analysis.readahead import is_far_ahead
from sinkbench.analysis.words import percent
from sinkbench.errors import ReasonCode
from sinkbench.results import Reason, TrialRecord

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
        text = (
            f"still warming: each trial was faster than the one before, {rates[0]:,.0f} to {rates[-1]:,.0f} records/s"
        )
        return reason(ReasonCode.RISING, text)
    unsteady = sum(trial.steady is False for trial in warm)
    if 2 * unsteady > len(warm):
        where = _of(unsteady, warm) if len(warm) > 1 or len(alone) == 1 else "the only one of its trials that was warm"
        return reason(ReasonCode.NOT_STEADY, f"not steady: the rate still changed at the end of {where}", faster=False)
    return None


def _of(count: int, trials: Sequence[TrialRecord]) -> str:
    return f"{count} of {len(trials)} trials" if len(trials) > 1 else "its only trial"
