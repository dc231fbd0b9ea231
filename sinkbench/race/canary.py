"""Sends ten records through each pipeline before the pilots, and says of each that fails where its records went."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from secrets import token_hex
from threading import Event, Lock

from sinkbench.analysis.deadletters import QUEUE
from sinkbench.errors import PlanError, ReasonCode, ServiceError, StackError, TargetError, TrialFailed
from sinkbench.live.events import Events
from sinkbench.plan.cells import Cell
from sinkbench.race.leftovers import drop_strays, note_run
from sinkbench.secrets import redacted
from sinkbench.services.causes import explained, failure
from sinkbench.services.connect import ConnectorStatus
from sinkbench.trial.audit import audit, queue_of
from sinkbench.trial.cluster import AGAIN_SECONDS, Cluster
from sinkbench.trial.names import TRIAL, Names, cleaning
from sinkbench.trial.record import Notes, check_audit, check_loaded
from sinkbench.trial.resources import Resources, create_target
from sinkbench.trial.trial import measured
from sinkbench.trial.values import Before, Measured, Stopped, Timeline, risen

RECORDS = 10
# Once all tasks run, a connector may wait for a batch that is not full, or a sink index late.
PATIENCE_SECONDS, START_SECONDS = 20.0, 60.0
# A connector that commits what it has not stored yet, as one with bulks does, loses that when it is stopped.
COMMITTED_SECONDS = 8.0
# A task that FAILED while others still begin may not be the one with the cause.
FAILED_SECONDS = 1.0
# A sink that counts records in other tables counts them so late.
COUNTED_SECONDS = 1.5


class Watcher(Events):
    """Shows nothing of a canary, which is short, and ends it when asked to."""

    def __init__(self, stop: Event) -> None:
        self._stop = stop

    def phase(self, text: str) -> None:
        if self._stop.is_set():
            raise TrialFailed("the canary was broken off")


@dataclass(frozen=True)
class Failed:
    """A pipeline whose ten records are not all in its target, once each and as sent, and committed; and why."""

    cell: Cell
    topic: str
    config: Mapping[str, str]
    why: str


def check_pipelines(cluster: Cluster, cells: Sequence[Cell]) -> None:
    """Raises PlanError, with a line for each pipeline whose ten records do not come out where they belong. One that may
    fail is sent none, since its trials tell.

    Sinks are checked beside each other, the pipelines of one in turn, with a task a worker. It removes its objects."""
    token = token_hex(3)
    note_run(cluster.stack, token)
    firsts: dict[str, Cell] = {}
    may_fail = {entry.shown_name for entry in cluster.plan.pipelines if entry.may_fail}
    for cell in (each for each in cells if each.label not in may_fail):
        # Whether a sink has connections for more tasks is what trials tell.
        firsts.setdefault(cell.label, replace(cell, fault=None, rows_before=0, multiple=1))
    of_sink: dict[str, list[tuple[Cell, Names]]] = {}
    for number, cell in enumerate(firsts.values(), 1):
        of_sink.setdefault(cell.sink, []).append((cell, Names.of(f"{token}_canary_{number}")))
    stop, one_load, clusters = Event(), Lock(), list[Cluster]()
    before = _written(cluster, of_sink)

    def check(pairs: Sequence[tuple[Cell, Names]]) -> list[Failed]:
        with cluster.for_thread() as own:
            clusters.append(own)
            found = (take(Resources(own, cell, names, RECORDS, Watcher(stop)), one_load) for cell, names in pairs)
            return [each for each in found if each is not None]

    with ThreadPoolExecutor(max_workers=len(of_sink) or None) as pool:
        running = [pool.submit(check, pairs) for pairs in of_sink.values()]
        try:
            failed = [each for found in running for each in found.result()]
        except BaseException as error:
            stop.set()
            cluster.hurry(clusters)
            if not isinstance(error, ServiceError):
                raise
            why = f"sending ten records through each pipeline was broken off: {error}"
            raise StackError(f"{why}; see `sinkbench status`; mend that and race again") from None
    if not failed:
        return
    time.sleep(COUNTED_SECONDS)
    strays = {sink: risen(before[sink], now) for sink, now in _written(cluster, of_sink).items()}
    removed = [name for sink in of_sink for name in drop_strays(cluster, sink, lambda name: token in name)]
    raise PlanError(redacted("\n".join(line_of(each, strays[each.cell.sink], removed) for each in failed)))


def take(own: Resources, one_load: Lock) -> Failed | None:
    """Sends `own.records` through a pipeline into its target; returns why not all of them arrived, if so."""
    notes, found = Notes(own.observer), measured(own)
    with cleaning(own.remove), notes.catching():
        try:
            create_target(own)
        except (PlanError, TargetError) as error:
            return Failed(own.cell, own.names.topic, {}, str(error))
        with one_load:
            found = replace(found, loaded=check_loaded(own.load_topic()), before=Before(queue=queue_of(own)))
        # Another sink's canary runs meanwhile.
        logs = own.logs(time.time(), alone=False)
        own.start_connector()
        last = _follow(own)
        why = None if last is None else failure(last, own.config, *logs)
        own.observer.phase("stopping the connector")
        own.stop_connector()
        timeline = Timeline(last=last, failure=why, created=True)
        found = replace(found, timeline=timeline, stopped=Stopped(consumed=own.consumed()))
        check_arrived(own, replace(found, audited=audit(own, found)), notes)
        if notes.reasons and why is None and (said := explained(logs[0](), own.config)):
            notes.add(ReasonCode.UNKNOWN, f"the worker's log says: {said}")
    text = "; ".join(dict.fromkeys(reason.text for reason in notes.reasons))
    return Failed(own.cell, own.names.topic, own.config, text) if notes.reasons else None


def _follow(own: Resources) -> ConnectorStatus | None:
    """The connector's status once all records are stored, a task stays FAILED, or patience ends."""
    deadline, failed_at = time.monotonic() + START_SECONDS, float("inf")
    while True:
        own.observer.phase("waiting for the records")
        status, now = own.status(), time.monotonic()
        stored = own.sink.read(own.names.target).stored >= own.records
        if status is not None and (status.failed or status.state == "FAILED"):
            failed_at = min(failed_at, now)
        if status is not None and status.running == own.cell.tasks:
            deadline = min(deadline, now + PATIENCE_SECONDS)
        if not stored and own.consumed() >= own.records:
            deadline = min(deadline, now + COMMITTED_SECONDS)
        if stored or now > deadline or now - failed_at > FAILED_SECONDS:
            return status
        time.sleep(AGAIN_SECONDS)


def check_arrived(own: Resources, found: Measured, notes: Notes) -> None:
    """Adds why the records are not where they belong."""
    last, consumed, made = found.timeline.last, found.stopped.consumed or 0, found.audited.audit
    if (cause := found.timeline.failure) is not None:
        failed = found.timeline.failed_tasks
        what = f"{failed} of {found.cell.tasks} tasks FAILED" if failed else "the connector FAILED"
        notes.add(ReasonCode.TASKS_FAILED, f"{what}: {cause}")
        return
    if found.audited.diverted:
        notes.add(ReasonCode.DIVERTED, found.audited.diverted)
    if made is not None and made.lost:
        text = f"{made.lost} of {found.records} records did not arrive in {found.cell.sink}"
        if consumed >= found.records:
            transforms = own.config.get("transforms", "")
            why = f"they were stored elsewhere, or dropped by the connector or its transforms ({transforms})"
            if own.config.get("errors.tolerance") == "all" and not own.config.get(QUEUE):
                why = f"errors.tolerance: all drops what fails; name a queue ({QUEUE}), or set it to none to see why"
            text += f", but are committed: {why}"
        notes.add(ReasonCode.LOST, text)
    if made is not None and made.duplicates:
        notes.add(ReasonCode.DUPLICATED, f"{made.duplicates} records were stored more than once")
    if made is not None and made.altered:
        notes.add(ReasonCode.ALTERED, "; ".join(found.audited.content_notes))
    check_audit(found, notes)
    if consumed < found.records and not found.audited.letters:
        what = "there is no connector" if last is None else f"its {last.running} tasks run"
        text = f"{what}, and its group {own.group} committed {consumed} of {found.records} records"
        notes.add(ReasonCode.NOT_READ, text)


def _written(cluster: Cluster, sinks: Mapping[str, object]) -> dict[str, Mapping[str, int]]:
    """Records so far by table or index that is not a trial's, for each sink that says."""
    known = {name: cluster.sink(name).capabilities.others for name in sinks}
    return {name: {} if others is None else others.seen().written for name, others in known.items()}


def line_of(failed: Failed, strays: Mapping[str, int], removed: Sequence[str]) -> str:
    """As `postgres/jdbc: 10 of 10 records did not arrive in postgres; meanwhile 10 went into readings (...)`."""
    label = f"{failed.cell.label}: "
    said = [failed.why.removeprefix(label)]
    for name, count in strays.items():
        # One that Connect named after another pipeline's topic is that one's.
        if TRIAL.search(name) and failed.topic not in name:
            continue
        bare = name.rpartition(".")[2]
        keys = [key for key, value in failed.config.items() if bare in value]
        gone = "removed again" if name in removed else "left there: delete what is not yours"
        because = f"; {keys[0]} names it" if keys else ""
        said.append(f"meanwhile {count} went into {failed.cell.sink}'s {name} ({gone}){because}")
    return label + "; ".join(said)
