"""Loads that insert, update and delete keys, against the real sinks: audited key by key."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import psycopg
import pytest

from loadgen.changestream import last_versions
from loadgen.options import Changes
from loadgen.records import key_names
from sinkbench.errors import PlanError, ReasonCode
from sinkbench.plan.plan import PlanDrain
from sinkbench.plan.sizing import is_too_short
from sinkbench.stack.local import LocalStack
from tests.e2e.onetrial import NAMES, one_trial
from tests.support.observers import At

KEYS, RECORDS, ROWS_BEFORE = 200, 1_000, 30_001
LOAD = f"load: {{keys: {KEYS}, changes: {{inserts: 0.4, updates: 0.4, deletes: 0.2, skew: zipf, seed: 7}}}}\n"
BEFORE = f"rows_before: {ROWS_BEFORE}"
UPSERT = f"pipelines: [{{pipeline: postgres/jdbc-upsert, target: postgres/keyed.sql, {BEFORE}}}]\n{LOAD}"
KEYED = f"pipelines: [{{pipeline: elasticsearch/camel-keyed, {BEFORE}}}]\n{LOAD}"
RUN = NAMES.trial


def keys_left() -> tuple[list[str], list[str]]:
    """The keys that are there in the end, and those that were deleted."""
    last, there = last_versions(Changes(inserts=0.4, updates=0.4, deletes=0.2, skew="zipf", seed=7), KEYS, RECORDS)
    names = np.array(key_names(KEYS))
    return names[there].tolist(), names[(last >= 0) & ~there].tolist()


def in_postgres(stack: LocalStack) -> None:
    """Changes the first row, deletes the second, and puts one back that was deleted."""
    (first, second, *_), (deleted, *_) = keys_left()
    table = NAMES.target
    with psycopg.connect(stack.endpoints.sinks["postgres"].address, application_name="a hand") as connection:
        old = "jsonb_set(payload, '{bench,seq}', '0')"
        connection.execute(f"UPDATE {table} SET payload = {old} WHERE key = %s", [first])  # noqa: S608
        connection.execute(f"DELETE FROM {table} WHERE key = %s", [second])  # noqa: S608
        document = json.dumps({"bench": {"run": RUN, "seq": 1}})
        connection.execute(f"INSERT INTO {table} (key, payload) VALUES (%s, %s)", [deleted, document])  # noqa: S608


def in_elasticsearch(stack: LocalStack) -> None:
    """The same of documents."""
    (first, second, *_), (deleted, *_) = keys_left()
    document = {"bench": {"run": RUN, "seq": 1}}
    index = f"{stack.endpoints.sinks['elasticsearch'].address}/{NAMES.target}/_doc"
    for key in (first, deleted):
        assert httpx.put(f"{index}/{key}", json=document).status_code in (200, 201)
    assert httpx.delete(f"{index}/{second}").status_code == 200


@pytest.mark.long
@pytest.mark.parametrize(
    ("plan", "act"), [(UPSERT, in_postgres), (KEYED, in_elasticsearch)], ids=["postgres", "elasticsearch"]
)
def test_the_audit_says_exactly_what_a_hand_has_changed_and_nothing_of_the_rows_before(
    stack: LocalStack, tmp_path: Path, plan: str, act: Callable[[LocalStack], None]
) -> None:
    record, samples = one_trial(stack, tmp_path, plan, RECORDS, observer=At(auditing=lambda: act(stack)))
    there, gone = keys_left()
    assert record.wrong_keys == {"stale": there[:1], "missing": there[1:2], "not_deleted": gone[:1]}
    audit, bloat = record.audit, record.bloat
    assert (audit.stale, audit.missing, audit.not_deleted) == (1, 1, 1)
    assert (audit.duplicates, audit.foreign) == (0, 0)
    assert (audit.stored, audit.accounted) == (len(there), RECORDS)
    assert {ReasonCode.STALE, ReasonCode.MISSING, ReasonCode.NOT_DELETED} <= {reason.code for reason in record.reasons}
    assert max(sample.stored or 0 for sample in samples) == RECORDS
    assert min(sample.stored for sample in samples if sample.stored is not None) >= 0
    assert bloat.dead_rows is not None
    # Elasticsearch may have merged meanwhile.
    assert min(bloat.bytes_before or 0, bloat.bytes_after or 0) > ROWS_BEFORE


def test_a_table_without_a_key_is_refused_before_anything_is_loaded(stack: LocalStack, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r'mine.yaml:2: postgres/jdbc-upsert: .* no column "key"'):
        one_trial(stack, tmp_path, "pipelines: [postgres/jdbc-upsert]\n" + LOAD, RECORDS)


SHARED_ROWS = """
pipelines: [{pipeline: postgres/jdbc-upsert, target: TARGET}]
multiples: [2]
load: {changes: {inserts: 0.5, updates: 0.5, seed: 7}}
drain: {timeout_seconds: 90}
"""


@pytest.mark.long
@pytest.mark.rare
@pytest.mark.parametrize("target", ["postgres/targets/newest.sql", "postgres/keyed.sql"])
def test_tasks_deadlock_over_rows_that_all_of_them_write_and_over_no_others(
    stack: LocalStack, tmp_path: Path, target: str
) -> None:
    record, _ = one_trial(stack, tmp_path, SHARED_ROWS.replace("TARGET", target), 60_000)
    if target == "postgres/keyed.sql":
        # A fast machine is done too soon for a rate, or for a look at the last task.
        assert not record.reasons or is_too_short(record, PlanDrain().window_seconds)
        assert record.bloat.deadlocks == 0
        return
    assert record.bloat.deadlocks > 0, record
    # Debezium's sink does not try such a batch again.
    assert record.failed_tasks > 0
    assert ReasonCode.TASKS_FAILED in {reason.code for reason in record.reasons}
    assert record.bottleneck.cause == "failed tasks", record
