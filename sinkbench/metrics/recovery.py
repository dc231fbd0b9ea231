"""The time and effect of changing the tasks of a running connector, and how it recovered from an injected fault."""

from collections.abc import Iterable, Sequence

from sinkbench.analysis.intervals import ratio_by_block
from sinkbench.analysis.rates import median_known, most, usable_median
from sinkbench.analysis.words import NOT_MEASURED, formatted, tenths, whole
from sinkbench.metrics.audit import count_columns
from sinkbench.metrics.metric import Column, Export, Fields, Metric, column, count, find, flag, number, words
from sinkbench.metrics.taken import Taken
from sinkbench.results import CellSummary, Recovery, Rescale, RunSummary

RECOVERIES, STATUS = "recoveries", "status"
# Times until recovery. A trial that did not see the end is not a fast one.
_ENDS = ("first_record_seconds", "rate_seconds", "lag_seconds")
_RATES = ("before_records_per_second", "during_records_per_second", "after_records_per_second")
_MEDIANS = (*_RATES, "standstill_seconds", "failed_seconds", "told_seconds", "stuck_seconds", "latest_seconds")
_MOST = (
    *("failed_tasks", "connections_before", "connections_after", "connections_left"),
    *("dead_letters", "late_records", "poisoned", "poison_stored", "poison_dead"),
)


def recovery_over(recoveries: Iterable[Recovery | None]) -> Recovery | None:
    """Medians of times and rates, maxima of counts; a time until recovery is None if one trial did not see it."""
    if not (found := [each for each in recoveries if each is not None]):
        return None
    of_ends = {name: [getattr(each, name) for each in found] for name in _ENDS}
    return Recovery.model_validate(
        {
            "target": ", ".join(dict.fromkeys(each.target for each in found if each.target)),
            "recovered": all(each.recovered for each in found),
            **{name: None if None in ends else median_known(ends) for name, ends in of_ends.items()},
            **{name: median_known(getattr(each, name) for each in found) for name in _MEDIANS},
            **{name: most(getattr(each, name) for each in found) for name in _MOST},
            "acts": next((each.acts for each in found if each.acts), []),
        }
    )


def _acts(cell: CellSummary) -> int | None:
    return None if cell.recovery is None else len(cell.recovery.acts)


def _together(cell: CellSummary, names: Sequence[str]) -> str:
    return "/".join(whole(find(cell, f"recovery.{name}")) for name in names)


RESCALES = "rescales"
_RESCALE_MEDIANS = ("rebalance_seconds", "standstill_seconds", "before_records_per_second")


def _rescale(taken: Taken) -> Fields:
    """Medians over the valid trials' changes of tasks, and the ratio to the cold start."""
    if taken.cell.tasks_before is None:
        return {}
    done = [trial.rescale for trial in taken.valid if trial.rescale is not None]
    medians = {name: median_known(getattr(each, name) for each in done) for name in _RESCALE_MEDIANS}
    colds = [each for each in taken.run.values() if each.cell.before is None and each.cell.place == taken.cell.place]
    ratio = ratio_by_block(colds[-1].cell.key, taken.rates, colds[-1].rates) if colds else None
    return {"rescale": Rescale(tasks_before=taken.cell.tasks_before, to_cold=ratio, **medians)}


def _interval(cell: CellSummary, _: RunSummary) -> str:
    interval = find(cell, "rescale.to_cold.interval")
    return NOT_MEASURED if interval is None else f"{interval.low:.2f}-{interval.high:.2f}"


METRICS = (
    Metric(
        "Rebalance",
        of_cell=_rescale,
        columns=[
            Column(RESCALES, 10, "tasks", lambda cell, _: f"{find(cell, 'rescale.tasks_before')} to {cell.tasks}"),
            column(RESCALES, 20, "rebalance\ns", "rescale.rebalance_seconds", tenths),
        ],
    ),
    Metric("Standstill", columns=[column(RESCALES, 30, "stand-\nstill s", "rescale.standstill_seconds", tenths)]),
    Metric(
        "Rate before and after",
        columns=[
            column(RESCALES, 40, "before\nrecords/s", "rescale.before_records_per_second", whole),
            Column(RESCALES, 50, "after\nrecords/s", lambda cell, _: whole(usable_median(cell))),
        ],
    ),
    Metric(
        "Ratio to a cold start",
        columns=[
            column(RESCALES, 60, "after/\ncold", "rescale.to_cold.estimate", lambda ratio: formatted(ratio, ".2f")),
            Column(RESCALES, 70, "95 %\ninterval", _interval),
            *count_columns(RESCALES, "twice", 80),
        ],
    ),
    Metric(
        "Faults",
        of_cell=lambda taken: {"recovery": recovery_over(trial.recovery for trial in taken.valid)},
        columns=[
            *(Column(table, 10, "fault", lambda cell, _: cell.fault or "", "words") for table in (RECOVERIES, STATUS)),
            *count_columns(RECOVERIES, place=20),
            column(RECOVERIES, 30, "dead\nletters", "recovery.dead_letters"),
            Column(STATUS, 20, "broken", lambda cell, _: find(cell, "recovery.target") or "", "words"),
            Column(
                STATUS,
                70,
                "conns before/\nafter/left",
                lambda cell, _: _together(cell, ("connections_before", "connections_after", "connections_left")),
            ),
        ],
        place=170,
        exports=[
            words("fault"),
            flag("recovered", "recovery.recovered"),
            *(
                number(name, f"recovery.{name}")
                for name in (
                    *("first_record_seconds", "standstill_seconds", "rate_seconds", "lag_seconds", *_RATES),
                    *("failed_seconds", "told_seconds", "stuck_seconds", "latest_seconds"),
                )
            ),
            *(count(name, f"recovery.{name}") for name in ("late_records", "connections_left", "dead_letters")),
            Export("acts", "BIGINT", lambda cell, _: _acts(cell)),
        ],
    ),
    Metric(
        "Recovery",
        columns=[
            column(RECOVERIES, 40, "first\nrecord s", "recovery.first_record_seconds", tenths),
            column(RECOVERIES, 50, "still s", "recovery.standstill_seconds", tenths),
            column(RECOVERIES, 60, "rate as\nbefore s", "recovery.rate_seconds", tenths),
            column(RECOVERIES, 70, "lag as\nbefore s", "recovery.lag_seconds", tenths),
            Column(RECOVERIES, 100, "records/s before/\nduring/after", lambda cell, _: _together(cell, _RATES)),
        ],
    ),
    Metric(
        "Late records",
        columns=[
            column(RECOVERIES, 80, "late\nrecords", "recovery.late_records"),
            column(RECOVERIES, 90, "latest s", "recovery.latest_seconds", tenths),
        ],
    ),
    Metric(
        "Truth of the status",
        columns=[
            column(STATUS, 30, "FAILED\ntasks", "recovery.failed_tasks"),
            column(STATUS, 40, "said\nafter s", "recovery.told_seconds", tenths),
            column(STATUS, 50, "stuck s", "recovery.stuck_seconds", tenths),
        ],
    ),
    Metric("Manual actions", columns=[Column(STATUS, 60, "manual\nactions", lambda cell, _: whole(_acts(cell)))]),
)
