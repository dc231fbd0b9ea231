"""Creates the trial's index or table, empty or with the plan's rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loadgen.options import load_from
from loadgen.records import records_of
from sinkbench.errors import PlanError, TargetError
from sinkbench.plan.checks import filled_columns
from sinkbench.trial.resources import Resources
from sinkbench.trial.values import Target

# Rows before a trial are copies of N records whose `bench.run` is not a trial's.
DOCUMENTS_BEFORE = 20_000
RUN_BEFORE = "before"


def reset_sink(own: Resources) -> Target:
    """Creates the target with the cell's `rows_before`. Raises TrialFailed if the trial does not fit the disk."""
    cell = own.cell
    own.cluster.check_disk(own.records, cell.rows_before, cell.form)
    own.observer.phase("resetting the sink")
    notes = create_target(own)
    if not cell.rows_before:
        return Target(notes)
    own.observer.phase("putting in the rows before")
    for done in _fill(own):
        own.observer.progress(done, cell.rows_before)
    return Target(notes, own.sink.disk_bytes(own.names.target))


def create_target(own: Resources) -> Sequence[str]:
    """Applies the service settings, creates the empty target, and returns notes on it.

    Raises TargetError if its file cannot be used or lacks a column, and PlanError if changes cannot be audited in it.
    """
    cluster, cell = own.cluster, own.cell
    cluster.set_services(cell)
    created = own.sink.create(own.names.target, None if cell.target is None else cluster.checkout / cell.target)
    _check_columns(own, created.columns)
    if cluster.plan.changes is not None:
        _check_keyed(own)
    return created.notes


def _check_columns(own: Resources, there: frozenset[str] | None) -> None:
    """Raises TargetError, and removes the target, if it lacks a column that the connector fills."""
    cell = own.cell
    file = {key: str(value).strip() for key, value in own.cluster.file_of(cell).items()}
    wanted = filled_columns(file, cell.form)
    if wanted is None or there is None:
        return
    if lacking := sorted(wanted - there):
        own.sink.drop(own.names.target)
        made = "the sink's own file" if cell.target is None else cell.target
        raise TargetError(
            f"{cell.label}: the table of {made} has no column {lacking[0]}, which {cell.pipeline} fills of records"
            f" of form {cell.form}; add it, or name another target or form"
        )


def _check_keyed(own: Resources) -> None:
    """Raises PlanError if changes cannot be audited in the target, tried by an audit of the empty one."""
    cell, changes = own.cell, own.sink.capabilities.changes
    where = f"{own.cluster.plan.where('load', 'changes')}: {cell.label}"
    if changes is None:
        raise PlanError(f"{where}: the sink {cell.sink} cannot be audited by key; leave the pipeline out")
    try:
        next(changes.versions(own.names.target, own.names.trial), None)
    except TargetError as error:
        raise PlanError(f"{where}: {error}") from None


def _fill(own: Resources) -> Iterator[int]:
    """Writes the rows before the trial; yields the count so far. Raises PlanError if the sink cannot do that."""
    cell, load, filling = own.cell, own.cluster.plan.load, own.sink.capabilities.filling
    if filling is None:
        raise PlanError(f"{cell.label}: the sink {cell.sink} takes no rows_before; leave it out")
    count = min(cell.rows_before, DOCUMENTS_BEFORE)
    options = {"bootstrap": "-", "topic": "-", "run": RUN_BEFORE, "count": count}
    kept = load_from({**options, "keys": load.keys, "record_bytes": load.record_bytes})
    yield from filling.fill(own.names.target, cell.rows_before, records_of(kept))
