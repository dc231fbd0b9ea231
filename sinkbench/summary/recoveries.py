"""What a fault did to a pipeline, over several trials."""

from __future__ import annotations

from collections.abc import Sequence

from sinkbench.analysis.rates import median_known, most
from sinkbench.results import Recovery

__all__ = ["recovery_over"]

# Until something was as before. A trial that has not seen it is no fast one.
_ENDS = ("first_record_seconds", "rate_seconds", "lag_seconds")
_MEDIANS = (
    "standstill_seconds",
    "before_records_per_second",
    "during_records_per_second",
    "after_records_per_second",
    "failed_seconds",
    "told_seconds",
    "stuck_seconds",
    "latest_seconds",
)
_MOST = (
    "failed_tasks",
    "connections_before",
    "connections_after",
    "connections_left",
    "dead_letters",
    "late_records",
    "poisoned",
    "poison_stored",
    "poison_dead",
)


def recovery_over(found: Sequence[Recovery]) -> Recovery | None:
    """Medians of times and rates, the most of what was counted; None of no trial.

    A time until something was as before is None if one of the trials has not seen that. It recovered if it did so in
    each trial.
    """
    if not found:
        return None
    if len(found) == 1:
        return found[0].model_copy(update={"began_seconds": None, "ended_seconds": None})
    return Recovery.model_validate(
        {
            "target": ", ".join(dict.fromkeys(each.target for each in found if each.target)),
            "recovered": all(each.recovered for each in found),
            **{name: _until([getattr(each, name) for each in found]) for name in _ENDS},
            **{name: median_known(getattr(each, name) for each in found) for name in _MEDIANS},
            **{name: most(getattr(each, name) for each in found) for name in _MOST},
            "acts": next((each.acts for each in found if each.acts), []),
        }
    )


def _until(seconds: Sequence[float | None]) -> float | None:
    return None if None in seconds else median_known(seconds)
