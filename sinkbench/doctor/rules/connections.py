"""Rules about connections: what the tasks' pools and JDBC URLs ask of a database and its pooler. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sinkbench.doctor.configs import pool_of
from sinkbench.doctor.diagnosis import Found, NotSeen, Rule
from sinkbench.doctor.facts import Area, Connector, Facts
from sinkbench.sinks.jdbcurl import JdbcUrl
from sinkbench.sinks.state import Database, Pooler


@dataclass(frozen=True)
class _Asked:
    """Connections needed at one time, by a cell of a plan or by all running connectors."""

    subject: str
    tasks: int
    least: int
    most: int
    fix: str
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
            yield _Asked(each.label, each.tasks, each.tasks * pool.least, each.tasks * pool.most, pool.fix, True)
    elif known:
        yield _Asked(
            " and ".join(each.name for each, _ in known),
            sum(each.tasks for each, _ in known),
            sum(each.tasks * pool.least for each, pool in known),
            sum(each.tasks * pool.most for each, pool in known),
            next((pool.fix for _, pool in known if pool.fix), ""),
            False,
        )


def _everything_asked(facts: Facts, *, pooled: bool) -> Iterator[_Asked | NotSeen]:
    if facts.plan is not None:
        # The cell with the most tasks of each pipeline needs most.
        yield from _asked(facts.in_question, pooled=pooled, planned=True)
    else:
        yield from _asked(facts.running, pooled=pooled, planned=False)


def _database(facts: Facts) -> Database | None:
    return next((state.database for state in facts.sinks.values() if state.database is not None), None)


def _pooler(facts: Facts) -> Pooler | None:
    return next((state.pooler for state in facts.sinks.values() if state.pooler is not None), None)


def _less(asked: _Asked) -> str:
    return f"lower {asked.fix}, use fewer tasks" if asked.fix else "use fewer tasks"


def too_many_connections(facts: Facts) -> Iterator[Found | NotSeen]:
    database = _database(facts)
    if database is None:
        return
    for asked in _everything_asked(facts, pooled=False):
        if isinstance(asked, NotSeen):
            yield asked
            continue
        # Running connectors have their connections already.
        used = database.used if asked.planned else database.used - (database.by_jdbc or 0)
        free = database.most_connections - database.reserved - used
        if asked.most <= free:
            continue
        invalidates = asked.least > free
        yield Found(
            asked.subject,
            f"{asked.words} connections, and the database has {free} for them: {database.most_connections} at most,"
            f" less {database.reserved} that are reserved and {used} of others",
            "a task that gets no connection FAILS" if invalidates else "a pool that grows may find none left",
            f"{_less(asked)}, go through a pooler, or raise max_connections",
            invalidates=invalidates,
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
                invalidates=True,
            )
        if asked.tasks > pooler.pool:
            yield Found(
                asked.subject,
                f"{asked.tasks} tasks share {pooler.pool} connections to the database",
                "tasks wait for one another in the pooler, which a trial's rate and its latency show",
                "raise default_pool_size, as long as the database has the cores for it, or use fewer tasks",
            )
    if database is not None:
        # The pool's connections may be open already.
        free = database.most_connections - database.reserved - max(database.used - pooler.servers, 0)
        if pooler.pool > free:
            yield Found(
                "pooler",
                f"its pool of {pooler.pool} connections is larger than the {free} that the database has for it",
                "the pooler's clients wait for a connection that the database refuses",
                "lower default_pool_size, or raise max_connections",
                invalidates=True,
            )


def _with_url(facts: Facts) -> Iterator[tuple[Connector, JdbcUrl]]:
    for each in facts.in_question:
        if each.url is not None and each.url.kind == "postgresql":
            yield each, each.url


def read_only_database(facts: Facts) -> Iterator[Found | NotSeen]:
    for each, url in _with_url(facts):
        if each.read_only is None:
            yield NotSeen(f"the connection of {each.label} cannot be tried from here, or does not come about")
        elif each.read_only:
            yield Found(
                each.label,
                f"{', '.join(url.hosts)} takes no writes: it follows another server, or default_transaction_read_only"
                " is on",
                'every insert fails ("cannot execute INSERT in a read-only transaction"), and the tasks with it',
                "name the primary in the URL, or all servers with targetServerType=primary",
                invalidates=True,
            )


def prepared_statements(facts: Facts) -> Iterator[Found]:
    pooler = _pooler(facts)
    if pooler is None or pooler.mode == "session" or pooler.prepared:
        return
    for each, url in _with_url(facts):
        threshold = url.options.get("prepareThreshold", "5")
        if not each.pooled or threshold == "0":
            continue
        was = f"prepareThreshold is {threshold}" + ("" if "prepareThreshold" in url.options else ", the default")
        yield Found(
            each.label,
            f"it goes through a pooler in {pooler.mode} mode, and {was}",
            "from then on the driver prepares its statements on one connection of the pool, and runs them on"
            ' another, which knows none of that name ("prepared statement does not exist"): tasks fail',
            "add prepareThreshold=0 to the URL, or set max_prepared_statements in PgBouncer 1.21 or later",
            invalidates=True,
        )


RULES = (
    Rule("too-many-connections", (Area.CONNECT, Area.DATABASE), too_many_connections),
    Rule("small-pool", (Area.CONNECT, Area.POOLER), small_pool),
    Rule("read-only-database", (Area.CONNECT,), read_only_database),
    Rule("prepared-statements", (Area.POOLER,), prepared_statements),
)
