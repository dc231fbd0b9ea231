"""Connections: what the tasks' pools ask for, against what a database and its pooler have. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sinkbench.doctor.configs import pool_of
from sinkbench.doctor.diagnosis import Found, NotSeen, Rule
from sinkbench.doctor.facts import Area, Connector, Facts
from sinkbench.sinks.state import Database, Pooler

__all__ = ["RULES"]

# As many connections as this times its cores keep a database busy; more only wait inside it.
USEFUL, AT_LEAST_USEFUL = 5, 3
# A task that has just ended may have a connection for a moment.
SETTLED_SECONDS = 30.0


@dataclass(frozen=True)
class _Asked:
    """What runs at one time asks for: a cell of a plan, or all connectors that are there."""

    subject: str
    tasks: int
    least: int
    most: int
    mend: str
    planned: bool

    @property
    def words(self) -> str:
        tasks = "1 task opens" if self.tasks == 1 else f"{self.tasks} tasks open"
        return f"{tasks} {self.least}" + (f" to {self.most}" if self.most > self.least else "")


def _asked(connectors: Sequence[Connector], *, pooled: bool, planned: bool) -> Iterator[_Asked | NotSeen]:
    those = [each for each in connectors if each.url is not None and bool(each.pooled) == pooled]
    known = []
    for each in those:
        pool = pool_of(each.config)
        if pool is None:
            yield NotSeen(f"how many connections a task of {each.config.get('connector.class')} opens is not known")
        else:
            known.append((each, pool))
    if planned:
        # A race runs one pipeline at a time.
        for each, pool in known:
            yield _Asked(each.label, each.tasks, each.tasks * pool.least, each.tasks * pool.most, pool.mend, True)
    elif known:
        yield _Asked(
            " and ".join(each.name for each, _ in known),
            sum(each.tasks for each, _ in known),
            sum(each.tasks * pool.least for each, pool in known),
            sum(each.tasks * pool.most for each, pool in known),
            next((pool.mend for _, pool in known if pool.mend), ""),
            False,
        )


def _everything_asked(facts: Facts, *, pooled: bool) -> Iterator[_Asked | NotSeen]:
    if facts.plan is not None:
        # The cell with most tasks of each pipeline asks for most.
        yield from _asked(facts.in_question, pooled=pooled, planned=True)
    else:
        yield from _asked(facts.running, pooled=pooled, planned=False)


def _database(facts: Facts) -> Database | None:
    return next((state.database for state in facts.sinks.values() if state.database is not None), None)


def _pooler(facts: Facts) -> Pooler | None:
    return next((state.pooler for state in facts.sinks.values() if state.pooler is not None), None)


def _less(asked: _Asked) -> str:
    return f"lower {asked.mend}, use fewer tasks" if asked.mend else "use fewer tasks"


def too_many_connections(facts: Facts) -> Iterator[Found | NotSeen]:
    database = _database(facts)
    if database is None:
        return
    for asked in _everything_asked(facts, pooled=False):
        if isinstance(asked, NotSeen):
            yield asked
            continue
        # What runs has its own already.
        used = database.used if asked.planned else database.used - (database.by_jdbc or 0)
        free = database.most_connections - database.reserved - used
        if asked.most <= free:
            continue
        spoils = asked.least > free
        yield Found(
            asked.subject,
            f"{asked.words} connections, and the database has {free} for them: {database.most_connections} at most,"
            f" less {database.reserved} that are reserved and {used} of others",
            "a task that gets no connection FAILS" if spoils else "a pool that grows may find none left",
            f"{_less(asked)}, go through a pooler, or raise max_connections",
            spoils=spoils,
        )


def small_pool(facts: Facts) -> Iterator[Found | NotSeen]:
    pooler, database = _pooler(facts), _database(facts)
    if pooler is None:
        return
    for asked in _everything_asked(facts, pooled=True):
        if isinstance(asked, NotSeen):
            yield asked
            continue
        others = pooler.clients if asked.planned else 0
        if asked.least > pooler.most_clients - others:
            yield Found(
                asked.subject,
                f"{asked.words} connections to the pooler, which takes {pooler.most_clients}, less {others} of others",
                "a task that gets no connection FAILS",
                f"raise max_client_conn, or {_less(asked)}",
                spoils=True,
            )
        if asked.tasks > pooler.pool:
            yield Found(
                asked.subject,
                f"{asked.tasks} tasks share {pooler.pool} connections to the database",
                "tasks wait for one another in the pooler, which a trial's rate and its latency show",
                "raise default_pool_size, as long as the database has the cores for it, or use fewer tasks",
            )
    if database is not None:
        # Those of the pool may be open already.
        free = database.most_connections - database.reserved - max(database.used - pooler.servers, 0)
        if pooler.pool > free:
            yield Found(
                "pooler",
                f"its pool of {pooler.pool} connections is larger than the {free} that the database has for it",
                "the pooler's clients wait for a connection that the database refuses",
                "lower default_pool_size, or raise max_connections",
                spoils=True,
            )


def waiting_clients(facts: Facts) -> Iterator[Found]:
    pooler = _pooler(facts)
    if pooler is None or not pooler.waiting:
        return
    yield Found(
        "pooler",
        f"{pooler.waiting} of {pooler.clients} clients wait for one of {pooler.pool} connections, the first of them for"
        f" {pooler.waits_seconds:.1f} s",
        "a task that waits in the pooler writes nothing",
        "raise default_pool_size, as long as the database has the cores for it, or use fewer tasks",
    )


def pool_beyond_useful(facts: Facts) -> Iterator[Found | NotSeen]:
    cores, pooler = facts.machine.cores, _pooler(facts)
    if cores is None:
        return
    most = USEFUL * cores
    figure = f"{cores:g} cores can use {AT_LEAST_USEFUL * cores:g} to {most:g}"
    why = "further connections wait for a core inside the database, and each takes memory there"
    for asked in _everything_asked(facts, pooled=False):
        if isinstance(asked, NotSeen):
            yield asked
        elif asked.least > most:
            yield Found(asked.subject, f"{asked.words} connections; {figure}", why, _less(asked) + ", or use a pooler")
    if pooler is None and any(each.pooled for each in facts.in_question):
        yield NotSeen(facts.unseen.get(Area.POOLER, "the pooler does not tell"))
    if pooler is not None and pooler.pool > most:
        yield Found("pooler", f"a pool of {pooler.pool} connections; {figure}", why, "lower default_pool_size")


def dead_connections(facts: Facts) -> Iterator[Found | NotSeen]:
    database = _database(facts)
    if database is None:
        return
    if database.by_jdbc is None:
        yield NotSeen("whose connections are open is shown to members of pg_read_all_stats only")
        return
    least = most = 0
    for each in facts.connectors:
        if each.planned or each.url is None or each.pooled or each.state == "STOPPED":
            continue
        pool = pool_of(each.config)
        if pool is None:
            yield NotSeen(f"how many connections a task of {each.config.get('connector.class')} opens is not known")
            return
        least += each.tasks * pool.least
        most += each.tasks * pool.most
    old = (database.oldest_jdbc_seconds or 0.0) >= SETTLED_SECONDS
    if database.by_jdbc <= least or not old:
        return
    # When a task began is told by nobody, so that no age tells a connection that is left from one of a pool that grew.
    may_have_grown = database.by_jdbc <= most
    can = f"open {least} at once, and can have {most}" if may_have_grown else f"can have {most}"
    why = "a connector that does not close its pool leaves some with each restart, until none is free"
    end = (
        "restart the workers, or end those whose connector is gone: SELECT pid, client_addr, client_port, backend_start"
        " FROM pg_stat_activity WHERE application_name = 'PostgreSQL JDBC Driver', then pg_terminate_backend(pid)"
    )
    yield Found(
        "database",
        f"{database.by_jdbc} connections of JDBC drivers are open, the oldest for {database.oldest_jdbc_seconds:.0f} s;"
        f" the connectors that are there {can}",
        (f"a pool may have grown under load; but {why}" if may_have_grown else why)
        + ("; here they may be another program's" if facts.shared else ""),
        f"stop the connectors and look again: what is open then is left over; if so, {end}" if may_have_grown else end,
    )


RULES = (
    Rule("too-many-connections", (Area.CONNECT, Area.DATABASE), too_many_connections),
    Rule("small-pool", (Area.CONNECT, Area.POOLER), small_pool),
    Rule("waiting-clients", (Area.POOLER,), waiting_clients),
    Rule("pool-beyond-useful", (Area.CORES,), pool_beyond_useful),
    Rule("dead-connections", (Area.CONNECT, Area.DATABASE), dead_connections),
)
