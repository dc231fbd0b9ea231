"""Whether a cell's rate is quotable: its trials were warm, steady, not shared, not rising one after the other, and
passed the content check if there was one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

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
    were taken. The reason has the `records_per_second` that the pipeline reaches at least: the highest of trials
    that still became faster, the lowest if rates fell, rose for other reasons, or the content was not checked."""
    taken = [trial for trial in valid if trial.records_per_second is not None]
    rates = [trial.records_per_second or 0.0 for trial in taken]
    unknown = [trial for trial in valid if trial.audit is not None and trial.audit.content_unknown]
    if unknown:
        text = f"content not checked: no record was compared with what was sent in {_of(len(unknown), valid)}"
        # With an injected fault there is no rate.
        figures = {"records_per_second": min(rates)} if rates else {}
        return Reason(code=ReasonCode.CONTENT_NOT_CHECKED, text=text, figures=figures)
    shared = [trial for trial in taken if is_shared(trial)]
    if 2 * len(shared) > len(taken):
        who = "; ".join(dict.fromkeys(each for trial in shared for each in trial.others))
        text = f"not alone in {_of(len(shared), taken)}: {who}"
        return Reason(code=ReasonCode.SHARED, text=text, figures={"records_per_second": max(rates)})
    taken = [trial for trial in taken if not is_shared(trial)]
    warm = rated(taken)
    if not taken or taken[0].offered_records_per_second is not None:
        return None
    rates = [trial.records_per_second or 0.0 for trial in taken]
    if 2 * len(warm) < len(taken):
        share = max(trial.compiling_share or 0.0 for trial in taken)
        cold = _of(len(taken) - len(warm), taken)
        text = f"still warming: compilers took up to {percent(share)} of the CPU time in {cold}"
        return Reason(code=ReasonCode.NOT_WARM, text=text, figures={"records_per_second": max(rates)})
    rates = [trial.records_per_second or 0.0 for trial in warm]
    rises = all(later > earlier for earlier, later in pairwise(rates))
    if len(rates) >= FEWEST_THAT_RISE and rises and rates[-1] > RISE * rates[0]:
        text = (
            f"still warming: each trial was faster than the one before, {rates[0]:,.0f} to {rates[-1]:,.0f} records/s"
        )
        return Reason(code=ReasonCode.RISING, text=text, figures={"records_per_second": max(rates)})
    unsteady = sum(trial.steady is False for trial in warm)
    if 2 * unsteady > len(warm):
        where = _of(unsteady, warm) if len(warm) > 1 or len(taken) == 1 else "the only one of its trials that was warm"
        text = f"not steady: the rate still changed at the end of {where}"
        return Reason(code=ReasonCode.NOT_STEADY, text=text, figures={"records_per_second": min(rates)})
    return None


def _of(count: int, trials: Sequence[TrialRecord]) -> str:
    return f"{count} of {len(trials)} trials" if len(trials) > 1 else "its only trial"
