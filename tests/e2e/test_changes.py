"""Loads that insert, update and delete keys, against the real sinks: audited key by key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import psycopg
import pytest

from loadgen.changes import Changes
from loadgen.changestream import last_versions
from loadgen.records import key_names
from sinkbench.errors import PlanError, ReasonCode
from sinkbench.stack.local import LocalStack
from tests.e2e.onetrial import one_trial
from tests.support.silent import Silent

KEYS, RECORDS = 200, 1_000
LOAD = f"load: {{keys: {KEYS}, changes: {{inserts: 0.4, updates: 0.4, deletes: 0.2, skew: zipf, seed: 7}}}}\n"
UPSERT = "pipelines: [{pipeline: postgres/jdbc-upsert, target: postgres/keyed.sql}]\n" + LOAD
KEYED = "pipelines: [elasticsearch/camel-keyed]\n" + LOAD
TABLE = RUN = "5eeded_001"


def keys_left() -> tuple[list[str], list[str]]:
    """The keys that are there in the end, and those that were deleted."""
    last, there = last_versions(Changes(inserts=0.4, updates=0.4, deletes=0.2, skew="zipf", seed=7), KEYS, RECORDS)
    names = np.array(key_names(KEYS))
    return names[there].tolist(), names[(last >= 0) & ~there].tolist()


class Hand(Silent):
    """Somebody whose hand changes what is stored, after the connector is gone and before the audit."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def phase(self, text: str) -> None:
        if text == "auditing":
            self._act()


def in_postgres(stack: LocalStack) -> None:
    """Changes the first row, deletes the second, and puts one back that was deleted."""
    (first, second, *_), (deleted, *_) = keys_left()
    table = f"tides_{TABLE}"
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
    index = f"{stack.endpoints.sinks['elasticsearch'].address}/tides_{TABLE}/_doc"
    for key in (first, deleted):
        assert httpx.put(f"{index}/{key}", json=document).status_code in (200, 201)
    assert httpx.delete(f"{index}/{second}").status_code == 200


@pytest.mark.parametrize("plan", [UPSERT, KEYED], ids=["postgres", "elasticsearch"])
def test_a_sink_holds_the_last_version_of_every_key(stack: LocalStack, tmp_path: Path, plan: str) -> None:
    record, _ = one_trial(stack, tmp_path, plan, RECORDS)
    there, _ = keys_left()
    # So few records are stored at once.
    assert {reason.code for reason in record.reasons} <= {ReasonCode.TOO_SHORT}, record.invalid
    assert record.audit is not None
    assert record.audit.clean
    assert (record.audit.stored, record.audit.stale) == (len(there), 0)
    assert record.audit.accounted == RECORDS
    assert record.audit.compared > 0
    assert record.bloat is not None
    assert record.bloat.dead_rows is not None
    assert (record.bloat.bytes_after or 0) > 0


@pytest.mark.parametrize(
    ("plan", "act"), [(UPSERT, in_postgres), (KEYED, in_elasticsearch)], ids=["postgres", "elasticsearch"]
)
def test_the_audit_says_exactly_what_a_hand_has_changed(
    stack: LocalStack, tmp_path: Path, plan: str, act: Callable[[LocalStack], None]
) -> None:
    record, _ = one_trial(stack, tmp_path, plan, RECORDS, observer=Hand(lambda: act(stack)))
    (first, second, *_), (deleted, *_) = keys_left()
    assert record.wrong_keys == {"stale": [first], "missing": [second], "undead": [deleted]}
    assert record.audit is not None
    assert (record.audit.stale, record.audit.missing, record.audit.undead) == (1, 1, 1)
    assert (record.audit.duplicates, record.audit.foreign) == (0, 0)
    wrong = {ReasonCode.STALE, ReasonCode.MISSING, ReasonCode.UNDEAD}
    assert wrong <= {reason.code for reason in record.reasons}


def test_a_table_without_a_key_is_refused_before_anything_is_loaded(stack: LocalStack, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r'mine.yaml:2: postgres/jdbc-upsert: .* no column "key"'):
        one_trial(stack, tmp_path, "pipelines: [postgres/jdbc-upsert]\n" + LOAD, RECORDS)


@pytest.mark.parametrize("pipeline", ["postgres/jdbc", "elasticsearch/camel-bulk"])
def test_rows_that_are_there_before_are_in_no_count(stack: LocalStack, tmp_path: Path, pipeline: str) -> None:
    rows: list[int] = []

    class Counting(Silent):
        def progress(self, done: int, total: int) -> None:
            rows.append(total)

    plan = f"pipelines: [{{pipeline: {pipeline}, rows_before: 30_001}}]\n"
    record, samples = one_trial(stack, tmp_path, plan, RECORDS, observer=Counting())
    assert {reason.code for reason in record.reasons} <= {ReasonCode.TOO_SHORT}, record.invalid
    assert 30_001 in rows
    assert record.audit is not None
    assert (record.audit.stored, record.audit.clean) == (RECORDS, True)
    assert min(sample.stored for sample in samples if sample.stored is not None) >= 0
    assert max(sample.stored or 0 for sample in samples) == RECORDS
    assert record.stamped_records_per_second is None
    # With the rows before it would be thirty times as much.
    assert 0 < (record.disk_bytes_per_record or 0) < 3_000


def test_a_row_that_was_there_before_and_is_gone_is_a_reason(stack: LocalStack, tmp_path: Path) -> None:
    def act() -> None:
        with psycopg.connect(stack.endpoints.sinks["postgres"].address, application_name="a hand") as connection:
            connection.execute(f"DELETE FROM tides_{TABLE} WHERE payload #>> '{{bench,run}}' = 'before' AND id < 8")  # noqa: S608

    plan = UPSERT.replace("postgres/keyed.sql", "postgres/keyed.sql, rows_before: 1_000")
    record, _ = one_trial(stack, tmp_path, plan, RECORDS, observer=Hand(act))
    assert "7 of the 1,000 rows that were there before are gone" in record.invalid
