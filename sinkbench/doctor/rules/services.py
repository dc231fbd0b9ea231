"""Rules about services: connections of the database and its pooler, disks of the search cluster, the machine. Pure."""

import re
from collections.abc import Iterator

from sinkbench.analysis.words import percent
from sinkbench.doctor.configs import Pool, pool_of
from sinkbench.doctor.diagnosis import Connector, Facts, Found, NotSeen
from sinkbench.sinks.values import DataNode, Pooler

# Below this the kernel begins to kill processes.
LEAST_AVAILABLE_BYTES = 500_000_000
_UNITS = {"b": 0, "kb": 1, "mb": 2, "gb": 3, "tb": 4, "pb": 5}
_BYTES = re.compile(r"([0-9.]+)([kmgtp]?b)")
STAGES = {
    "flood": "every index with a shard there becomes read-only, in the middle of a trial",
    "high": "shards are moved away from there, which takes disk and network from a trial",
    "low": "no further copies are put there, so that they stay unassigned",
}
FAILS = "a task that gets no connection FAILS"


def _asked(facts: Facts, *, pooled: bool) -> Iterator[tuple[Connector, Pool, str] | NotSeen]:
    """The connectors with the connections that all tasks of each need at one time, and these in words."""
    for each in facts.in_question:
        if each.url is None or bool(each.pooled) != pooled:
            continue
        if (pool := pool_of(each.config)) is None:
            yield NotSeen(f"how many connections a task of {each.config.get('connector.class')} opens is not known")
            continue
        less = f"lower {pool.fix}, use fewer tasks" if pool.fix else "use fewer tasks"
        need = Pool(each.tasks * pool.least, each.tasks * pool.most, less)
        words = "1 task opens" if each.tasks == 1 else f"{each.tasks} tasks open"
        yield each, need, f"{words} {need.least}" + (f" to {need.most}" if need.most > need.least else "")


def _pooler(facts: Facts) -> Pooler | None:
    return next((state.pooler for state in facts.sinks.values() if state.pooler is not None), None)


def too_many_connections(facts: Facts) -> Iterator[Found | NotSeen]:
    if (database := next(filter(None, (state.database for state in facts.sinks.values())), None)) is None:
        return
    for asked in _asked(facts, pooled=False):
        if isinstance(asked, NotSeen):
            yield asked
            continue
        each, need, words = asked
        # Running connectors have their connections already.
        used = database.used if each.planned else database.used - (database.by_jdbc or 0)
        free = database.most_connections - database.reserved - used
        if need.most > free:
            yield Found(
                each.label,
                f"{words} connections, and the database has {free} for them: {database.most_connections} at"
                f" most, less {database.reserved} that are reserved and {used} of others",
                FAILS if need.least > free else "a pool that grows may find none left",
                invalidates=need.least > free,
                values={"less": need.fix},
            )


def small_pool(facts: Facts) -> Iterator[Found | NotSeen]:
    if (pooler := _pooler(facts)) is None:
        return
    for asked in _asked(facts, pooled=True):
        if isinstance(asked, NotSeen):
            yield asked
            continue
        each, need, words = asked
        others = pooler.clients if each.planned else 0
        if need.least > pooler.most_clients - others:
            takes = f"which takes {pooler.most_clients}, less {others} of others"
            text, fix = f"{words} connections to the pooler, {takes}", f"raise max_client_conn, or {need.fix}"
            yield Found(each.label, text, FAILS, fix, invalidates=True)
        if pooler.settings.size is not None and each.tasks > pooler.settings.size:
            text = f"{each.tasks} tasks share {pooler.settings.size} connections to the database"
            yield Found(each.label, text)


def prepared_statements(facts: Facts) -> Iterator[Found]:
    pooler = _pooler(facts)
    if pooler is None or pooler.settings.mode == "session" or pooler.settings.prepared_statements:
        return
    for each in facts.in_question:
        if each.url is None or each.url.kind != "postgresql" or not each.pooled:
            continue
        if (threshold := each.url.options.get("prepareThreshold", "5, the default")) != "0":
            text = f"it goes through a pooler in {pooler.settings.mode} mode, and prepareThreshold is {threshold}"
            yield Found(each.label, text)


def full_disk(facts: Facts) -> Iterator[Found | NotSeen]:
    for name, state in facts.sinks.items():
        for node in () if state.cluster is None else state.cluster.nodes:
            if node.disk_bytes is None or node.free_bytes is None:
                yield NotSeen(f"{name} does not tell how full the disk of {node.name} is")
                continue
            marks = {} if state.cluster is None else state.cluster.watermarks
            stage = next((each for each in STAGES if is_beyond(marks.get(each, ""), node)), None)
            if stage is not None:
                yield Found(
                    f"node {node.name}",
                    f"{percent(1 - node.free_bytes / node.disk_bytes)} of its disk are used,"
                    f" {node.free_bytes / 1e9:.1f} GB are free: beyond the {stage} watermark, {marks[stage]}",
                    STAGES[stage],
                    invalidates=stage == "flood",
                )


def is_beyond(watermark: str, node: DataNode) -> bool:
    """Whether a node's disk is past a watermark: a used share (85%, 0.85) or free bytes (5gb); False for other text."""
    text = watermark.strip().lower()
    if not node.disk_bytes or node.free_bytes is None:
        return False
    if (found := _BYTES.fullmatch(text)) is not None:
        return node.free_bytes < float(found[1]) * float(1024 ** _UNITS[found[2]])
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return False
    return 1 - node.free_bytes / node.disk_bytes > share


def little_memory(facts: Facts) -> Iterator[Found]:
    available, needed = facts.machine.available_bytes, facts.machine.needed_bytes
    if available is not None and available < max(needed, LEAST_AVAILABLE_BYTES):
        wants = f", and the stack takes about {needed / 1e9:.1f} GB" if needed else ""
        yield Found("machine", f"{available / 1e9:.1f} GB of memory are available{wants}")


def little_disk(facts: Facts) -> Iterator[Found]:
    free, least = facts.machine.free_bytes, facts.machine.least_free_bytes
    if free is not None and free < least:
        needed = f"at least {least / 1e9:.0f} GB are needed"
        yield Found("disk", f"{free / 1e9:.1f} GB free where the services keep their data, {needed}")
