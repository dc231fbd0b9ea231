"""The commands of docs/where.md give every right that a race needs; a missing one costs what that page says."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sinkbench.errors import StackError
from sinkbench.results import TrialRecord
from sinkbench.services.kafka import Kafka
from sinkbench.stack.external import ExternalStack
from sinkbench.stack.local import LocalStack
from tests.e2e.granted import GRANT, GRANTS, as_administrator, execute, granted
from tests.e2e.onetrial import one_trial
from tests.support.commands import sinkbench_in, succeeded
from tests.support.trials import quick_plan

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rights")


@pytest.fixture(scope="module")
def stack(folder: Path) -> Iterator[LocalStack]:
    with granted(folder) as stack:
        yield stack


def drained(folder: Path, pipeline: str) -> TrialRecord:
    external = ExternalStack(folder / "clusters.yaml")
    return one_trial(external, folder, f"pipelines: [{pipeline}]\ndrain: {{stall_seconds: 5}}\n", 1_000)[0]


def test_a_race_with_these_rights_alone_sees_all_that_the_page_names(stack: LocalStack, folder: Path) -> None:
    (folder / "mine.yaml").write_text(quick_plan("postgres/jdbc"))
    succeeded(sinkbench_in(folder, "race", "mine.yaml", "--stack", "clusters.yaml"))
    summary = json.loads((folder / "results" / "latest" / "summary.json").read_text())
    (cell,) = summary["cells"]
    assert (cell["passed"], cell["notes"]) == (True, [])
    assert None not in cell["connections"].values()
    assert None not in summary["environment"]["durability"]["kafka"].values()
    record = drained(folder, "elasticsearch/reference-bulk")
    assert record.audit is not None
    assert (record.audit.stored, record.notes) == (1_000, [])
    assert record.connections is not None
    heap = record.peak_memory["elasticsearch"].heap_bytes
    assert None not in (record.connections.clients_peak, record.records_per_write, heap)


def test_a_missing_right_is_told_or_costs_what_the_page_says(stack: LocalStack, folder: Path) -> None:
    execute(stack.endpoints.sinks["postgres"].address, "REVOKE pg_read_all_stats FROM bench")
    record = drained(folder, "postgres/jdbc")
    assert record.audit is not None
    assert record.connections is not None
    assert (record.audit.stored, record.connections.clients_peak, record.connections.server_peak) == (1_000, None, None)
    refuse = GRANT.replace("--add", "--remove --force")
    as_administrator(stack, refuse + GRANTS[1])
    assert "Group authorization failed" in drained(folder, "postgres/jdbc").invalid[0]
    as_administrator(stack, GRANT + GRANTS[1] + refuse + "".join(GRANTS[-2:]))
    external = ExternalStack(folder / "clusters.yaml")
    kafka = Kafka(external.endpoints.kafka, external.endpoints.kafka_settings)
    assert kafka.broker_settings(["min.insync.replicas"]) == {"min.insync.replicas": None}
    told = drained(folder, "postgres/jdbc").invalid[0]
    assert "Not authorized to access" in told
    assert "let the workers' user read these topics as this group" in told
    execute(stack.endpoints.sinks["pgbouncer"].address, "SET stats_users = ''")
    with pytest.raises(StackError, match=r"pgbouncer at .*: FATAL: .*; add its user to stats_users"):
        external.up(lambda line: None)
