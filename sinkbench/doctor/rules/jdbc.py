"""JDBC URLs: where they lead, what they ask of the driver, and whether they fit a pooler. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sinkbench.doctor.diagnosis import Found, NotSeen, Rule
from sinkbench.doctor.facts import Area, Connector, Facts
from sinkbench.services.versions import numbers_of
from sinkbench.sinks.jdbcurl import JdbcUrl

__all__ = ["RULES"]

POSTGRESQL = "postgresql"
TARGET = "targetServerType"
# What leads to a server that takes writes, by any version of the driver, and with no other server allowed.
WRITABLE = ("primary", "master")
# The first version of PostgreSQL's driver that knows an option, or a value of one: its changelog.
SINCE = {
    (TARGET, "primary"): (42, 2, 11),
    (TARGET, "secondary"): (42, 2, 0),
    ("escapeSyntaxCallMode", None): (42, 2, 9),
    ("readOnlyMode", None): (42, 2, 9),
    ("maxResultBuffer", None): (42, 2, 10),
    ("raiseExceptionOnSilentRollback", None): (42, 2, 11),
    ("gssEncMode", None): (42, 2, 15),
}


def _with_url(facts: Facts) -> Iterator[tuple[Connector, JdbcUrl]]:
    for each in facts.in_question:
        if each.url is not None and each.url.kind == POSTGRESQL:
            yield each, each.url


def read_only_database(facts: Facts) -> Iterator[Found | NotSeen]:
    for each, url in _with_url(facts):
        hosts = ", ".join(url.hosts)
        if each.read_only is None:
            yield NotSeen(f"the connection of {each.label} cannot be tried from here, or does not come about")
        elif each.read_only:
            yield Found(
                each.label,
                f"{hosts} takes no writes: it follows another server, or default_transaction_read_only is on",
                'every insert fails ("cannot execute INSERT in a read-only transaction"), and the tasks with it',
                f"name the primary in the URL, or all servers with {TARGET}=primary",
                spoils=True,
            )


def no_failover(facts: Facts) -> Iterator[Found | NotSeen]:
    databases = [state.database for state in facts.sinks.values() if state.database is not None]
    replicas = max((database.replicas for database in databases), default=0)
    for each, url in _with_url(facts):
        if each.pooled:
            continue
        chosen = url.options.get(TARGET, "any")
        if len(url.hosts) > 1 and chosen not in WRITABLE:
            yield Found(
                each.label,
                f"its URL names {len(url.hosts)} servers, and {TARGET} is {chosen}",
                "the driver takes the first server that answers, which may be one that takes no writes",
                f"add {TARGET}=primary to the URL",
            )
        elif len(url.hosts) == 1 and Area.DATABASE in facts.unseen:
            yield NotSeen(facts.unseen[Area.DATABASE])
        elif len(url.hosts) == 1 and replicas:
            yield Found(
                each.label,
                f"its URL names one server, of {replicas + 1} that there are",
                "after a failover that server is gone, or takes no writes; the tasks fail",
                f"name all servers in the URL, separated by commas, with {TARGET}=primary",
            )


def prepared_statements(facts: Facts) -> Iterator[Found]:
    pooler = next((state.pooler for state in facts.sinks.values() if state.pooler is not None), None)
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
            spoils=True,
        )


def old_driver(facts: Facts) -> Iterator[Found | NotSeen]:
    for each, url in _with_url(facts):
        wanted = {
            f"{option}={url.options[option]}": since
            for (option, value), since in SINCE.items()
            if option in url.options and value in (None, url.options[option])
        }
        if not wanted:
            continue
        if each.driver is None:
            yield NotSeen(f"the version of the driver in the plugin of {each.label} is not seen")
            continue
        for option, since in wanted.items():
            if numbers_of(each.driver) >= since:
                continue
            least = ".".join(map(str, since))
            yield Found(
                each.label,
                f"its URL has {option}, which PostgreSQL's driver knows from {least} on; the plugin's is {each.driver}",
                "the driver refuses the URL, or does as if the option were not there",
                f"put postgresql-{least}.jar or a later one into the plugin's folder, in place of the old one",
                spoils=True,
            )


RULES = (
    Rule("read-only-database", (Area.CONNECT,), read_only_database),
    Rule("no-failover", (), no_failover),
    Rule("prepared-statements", (Area.POOLER,), prepared_statements),
    Rule("old-driver", (), old_driver),
)
