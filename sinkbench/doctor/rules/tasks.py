"""Rules about tasks: whether they run, are spread evenly over the workers, and have records to read. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sinkbench.analysis.words import counted
from sinkbench.doctor.diagnosis import Found, NotSeen, Rule, topics_not_seen
from sinkbench.doctor.facts import Area, Connector, Facts


def race_refused(facts: Facts) -> Iterator[Found | NotSeen]:
    if facts.plan is not None and Area.CONNECT in facts.unseen:
        yield NotSeen(facts.unseen[Area.CONNECT])
    for line in facts.refusals:
        yield Found(
            f"plan {facts.plan}",
            line,
            "a race of this plan ends before its first trial",
            "the line says what to do",
            invalidates=True,
        )


def failed_tasks(facts: Facts) -> Iterator[Found]:
    for each in facts.connectors:
        if each.planned or not (each.failed or each.state == "FAILED"):
            continue
        what = f"{each.failed} of {each.tasks} tasks FAILED" if each.failed else "the connector FAILED"
        yield Found(
            each.name,
            what + (f": {each.cause}" if each.cause else ""),
            "what they should read stays unread, until the tasks that are left get their partitions and fail, too",
            "remove the cause, then start them again:"
            f" {facts.worker_curl} -X POST"
            f" '{facts.worker}/connectors/{each.name}/restart?includeTasks=true&onlyFailed=true'",
            invalidates=True,
        )


def uneven_tasks(facts: Facts) -> Iterator[Found]:
    for each in facts.running:
        counts = [*each.placement.values()]
        # Where the workers' names are unknown, the placement lacks workers without a task.
        counts += [0] * (facts.workers - len(counts))
        if not facts.workers or not each.placement or each.failed:
            continue
        spread = ", ".join(f"{worker} {number}" for worker, number in sorted(each.placement.items()))
        multiple = max(1, round(each.tasks / facts.workers))
        fix = f"sinkbench scale {each.name} {multiple}"
        idle = sum(count == 0 for count in counts) if each.tasks >= facts.workers else 0
        if max(counts) - min(counts) > 1 or idle:
            yield Found(
                each.name,
                f"its {each.tasks} tasks are spread unevenly over {facts.workers} workers ({spread})",
                "Connect deals out the tasks of all connectors together, each to the worker that has fewest: one worker"
                " then works for others, and the slowest sets the pace",
                f"give every connector a multiple of {facts.workers} tasks, or stop the others; then {fix}",
                invalidates=True,
            )
        elif each.tasks % facts.workers:
            yield Found(
                each.name,
                f"{each.tasks} tasks are no multiple of {facts.workers} workers",
                "one worker has a task more than another, and the next connector's tasks go to those with fewer",
                fix,
            )


def other_connectors(facts: Facts) -> Iterator[Found]:
    others = [each for each in facts.running if not each.trials]
    if facts.plan is not None or len(others) < len(facts.running):
        for each in others:
            found = _uneven([each], facts.workers)
            yield Found(
                each.name,
                f"it runs {counted(each.tasks, 'task')} on the same workers"
                + (f", and unbalances those of others: {found} is no multiple of {facts.workers}" if found else ""),
                "a trial with interference is in no rate"
                if facts.shared
                else "a race on your own stack is refused while another connector runs",
                f"{facts.worker_curl} -X PUT {facts.worker}/connectors/{each.name}/stop"
                " (the same with /resume starts it again)",
                invalidates=True,
            )
    elif len(others) > 1:
        tasks = ", ".join(f"{each.name} {each.tasks}" for each in others)
        found = _uneven(others, facts.workers)
        unbalanced = f"; these unbalance one another's: {found}, no multiple of {facts.workers}" if found else ""
        yield Found(
            f"{len(others)} connectors",
            f"they run tasks on the same workers: {tasks}{unbalanced}",
            "they share CPU, memory and connections, and none of their rates is its own",
            f"{facts.worker_curl} -X PUT {facts.worker}/connectors/NAME/stop (the same with /resume starts it again)",
        )


def _uneven(connectors: Sequence[Connector], workers: int) -> str:
    """The task counts that are no multiple of the workers; "" if there are none, or the workers are unknown."""
    return " and ".join(str(each.tasks) for each in connectors if workers and each.tasks % workers)


def more_tasks_than_partitions(facts: Facts) -> Iterator[Found | NotSeen]:
    yield from topics_not_seen(facts)
    for each in facts.running:
        partitions = sum(len(facts.topics[name].records) for name in each.topics if name in facts.topics)
        if not 0 < partitions < each.tasks:
            continue
        idle = "1 has" if each.tasks == partitions + 1 else f"{each.tasks - partitions} have"
        yield Found(
            each.name,
            f"{each.tasks} tasks read {partitions} partitions, so that {idle} nothing to do",
            "a partition is read by one task, so that further tasks only take memory and connections",
            _fewer_tasks(each, partitions, facts.workers),
            invalidates=True,
        )


def _fewer_tasks(connector: Connector, partitions: int, workers: int) -> str:
    multiple = partitions // workers if workers else 0
    if not multiple:
        return f"make a topic with {connector.tasks} partitions, or more"
    return f"sinkbench scale {connector.name} {multiple}, or a topic with {connector.tasks} partitions, or more"


RULES = (
    Rule("race-refused", (), race_refused),
    Rule("failed-tasks", (Area.CONNECT,), failed_tasks),
    Rule("uneven-tasks", (Area.CONNECT,), uneven_tasks, passes=True),
    Rule("other-connectors", (Area.CONNECT,), other_connectors),
    Rule("more-tasks-than-partitions", (Area.CONNECT, Area.KAFKA), more_tasks_than_partitions),
)
