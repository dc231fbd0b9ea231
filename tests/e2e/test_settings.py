"""What a plan sets the services of a sink to is in force while a trial runs, and not afterwards."""

import os
import signal
from contextlib import closing
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

from sinkbench.race.leftovers import sweep
from sinkbench.settings import CHECKOUT
from sinkbench.stack.local import LocalStack
from sinkbench.trial.cluster import Cluster
from tests.e2e.onetrial import NAMES, one_trial
from tests.e2e.races import a_race, left_behind, wait_for_draining
from tests.support.observers import At
from tests.support.trials import plan_of

TARGET = NAMES.target
DRAIN = "drain: {compiling_percent: 100, window_seconds: 4, pilot_seconds: 1, warm_up_seconds: 2}"
# Each row has what the session was set to that has inserted it.
TELLING = """
CREATE TABLE tides (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload jsonb NOT NULL,
    how text NOT NULL DEFAULT current_setting('synchronous_commit'));
"""
SETTINGS = "{postgres: {synchronous_commit: off}, pgbouncer: {pool_mode: session, default_pool_size: 20}}"
SET = f"""
pipelines:
  - {{pipeline: postgres/jdbc-pgbouncer, target: telling.sql, settings: {SETTINGS}}}
trials: 1
{DRAIN}
"""
OF_DATABASE = "SELECT setconfig FROM pg_db_role_setting"
AFTER = {"pool_mode": "transaction", "default_pool_size": "10"}


def pooler(stack: LocalStack) -> dict[str, str]:
    """What PgBouncer runs with, of what these tests set."""
    address = stack.endpoints.sinks["pgbouncer"].address
    with psycopg.connect(address, autocommit=True, prepare_threshold=None, row_factory=dict_row) as console:
        return {row["key"]: row["value"] for row in console.execute("SHOW CONFIG") if row["key"] in AFTER}


def commit_of_a_new_session(stack: LocalStack) -> str:
    with psycopg.connect(stack.endpoints.sinks["postgres"].address) as connection:
        return str(connection.execute("SHOW synchronous_commit").fetchall()[0][0])


@pytest.mark.long
def test_sessions_and_pools_are_set_while_a_trial_runs_and_not_afterwards(
    stack: LocalStack, database: psycopg.Connection, tmp_path: Path
) -> None:
    def look() -> object:
        rows = database.execute(sql.SQL("SELECT DISTINCT how FROM {}").format(sql.Identifier(TARGET)))
        return rows.fetchall(), pooler(stack)

    (tmp_path / "telling.sql").write_text(TELLING)
    seen: list[object] = []
    # Enough records for a second look at what the pooler counts, which is taken once a second.
    record, samples = one_trial(stack, tmp_path, SET, 250_000, observer=At(auditing=lambda: seen.append(look())))
    assert record.audit.clean, record
    assert seen == [([("off",)], {"pool_mode": "session", "default_pool_size": "20"})]
    assert (record.pool.mode, record.pool.size) == ("session", 20)
    assert record.pool.most_waiting is not None
    assert record.pool.wait_ms_per_transaction is not None, samples[-1]
    assert any("synchronous_commit is off" in note for note in record.notes)
    # Each client has a connection of its own, more than the file lets a pool have.
    assert (record.connections.server_peak or 0) > int(AFTER["default_pool_size"])
    assert (pooler(stack), commit_of_a_new_session(stack)) == (AFTER, "on")
    assert database.execute(OF_DATABASE).fetchall() == []


def test_an_index_is_made_as_the_plan_says(stack: LocalStack, tmp_path: Path) -> None:
    address = stack.endpoints.sinks["elasticsearch"].address

    def look() -> object:
        settings = httpx.get(f"{address}/{TARGET}/_settings?flat_settings=true").json()[TARGET]["settings"]
        return settings["index.translog.durability"], settings["index.number_of_shards"]

    text = "{elasticsearch: {index.translog.durability: async, index.number_of_shards: 1}}"
    plan = f"pipelines:\n  - {{pipeline: elasticsearch/camel-bulk, settings: {text}}}\n{DRAIN}\n"
    seen: list[tuple[str, str]] = []
    record, _ = one_trial(stack, tmp_path, plan, 20_000, observer=At(auditing=lambda: seen.append(look())))
    assert [(durability.lower(), shards) for durability, shards in seen] == [("async", "1")]
    assert any("index.translog.durability is async" in note for note in record.notes)
    assert not any("Elasticsearch added" in note for note in record.notes)


@pytest.mark.long
def test_what_a_killed_race_has_set_is_set_back_by_the_next_command(
    stack: LocalStack, database: psycopg.Connection, tmp_path: Path
) -> None:
    (tmp_path / "telling.sql").write_text(TELLING)
    database.execute(f"ALTER DATABASE {database.info.dbname} SET work_mem TO '8MB'")
    try:
        with a_race(tmp_path, SET) as race:
            wait_for_draining(stack, "-001")
            os.killpg(race.pid, signal.SIGKILL)
            race.communicate(timeout=60)
        assert pooler(stack) == {"pool_mode": "session", "default_pool_size": "20"}
        assert commit_of_a_new_session(stack) == "off"
        with closing(Cluster(stack, plan_of(), CHECKOUT)) as now:
            swept = sweep(now)
        of_pgbouncer = {f"the setting {name} of pgbouncer" for name in AFTER}
        assert {"the setting synchronous_commit of postgres", *of_pgbouncer} <= set(swept)
        assert (pooler(stack), commit_of_a_new_session(stack), left_behind(stack)) == (AFTER, "on", [])
        # What somebody else has set stays.
        assert database.execute(OF_DATABASE).fetchall() == [(["work_mem=8MB"],)]
    finally:
        database.execute(f"ALTER DATABASE {database.info.dbname} RESET work_mem")
