"""JVMs that have no memory left: who they are, and what a person is told."""

import pytest

from sinkbench.errors import ReasonCode
from sinkbench.plan.cells import expand
from sinkbench.services.connect import ConnectorStatus, Task
from sinkbench.stack import ServiceState
from sinkbench.summary.cells import summarize
from sinkbench.trial.stop import died_of_memory
from tests.support.fakecluster import FakeCluster, codes, drained
from tests.support.trials import plan_of

PLAN = plan_of("elasticsearch/camel-bulk")
CELL = expand(PLAN, 3)[0]
EXHAUSTED = """org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.
\tat org.apache.kafka.connect.runtime.WorkerSinkTask.deliverMessages(WorkerSinkTask.java:636)
Caused by: java.lang.OutOfMemoryError: Java heap space
\tat java.base/java.util.Arrays.copyOf(Arrays.java:3541)
"""


@pytest.mark.parametrize(
    ("state", "found"),
    [
        (ServiceState("connect-2", "dead", None, "exit status 3", 3), ["connect-2"]),
        (ServiceState("elasticsearch", "dead", None, "exit status 3", 3), ["elasticsearch"]),
        (ServiceState("connect-2", "dead", None, "killed"), []),
        (ServiceState("connect-1", "dead", None, "exit status 3", 3), []),
        # Of these such an exit code says something else.
        (ServiceState("postgres", "dead", None, "exit status 3", 3), []),
    ],
)
def test_a_jvm_without_heap_is_known_by_its_exit_code(state: ServiceState, found: list[str]) -> None:
    said = died_of_memory([state], ["connect-2", "elasticsearch", "postgres"]) or ""
    assert said.split(" died")[:1] == (found or [""])


def test_what_is_said_names_memory_the_setting_and_what_tasks_hold() -> None:
    def said_of(*names: str) -> str:
        return str(died_of_memory([ServiceState(name, "dead", None, "", 3) for name in names], names))

    said = said_of("connect-1", "connect-3")
    assert said.startswith("connect-1 and connect-3 died, out of memory: their Java heaps were used up (exit code 3)")
    assert (
        "give them more (SINKBENCH_CONNECT_HEAP), or have tasks hold less: consumer.override.max.poll.records" in said
    )
    assert said_of("elasticsearch-2").endswith("give it more (SINKBENCH_ELASTICSEARCH_HEAP)")
    assert "\n" not in said


def test_a_worker_that_dies_for_memory_makes_its_trial_invalid_for_that_and_is_audited_once_it_is_back() -> None:
    cluster = FakeCluster(PLAN, dies=5.0, mortal="connect-2", dead=["connect-2"], exit_code=3)
    record = drained(cluster, cluster.revive)
    assert codes(record) == [ReasonCode.OUT_OF_MEMORY]
    assert record.audit is not None
    (cell,) = summarize([CELL], [record])
    assert not cell.passed
    assert cell.verdict.startswith("invalid: connect-2 died, out of memory: its Java heap was used up")


def test_tasks_that_fail_for_memory_say_so_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    states = [("RUNNING", ""), ("RUNNING", ""), ("FAILED", EXHAUSTED)]
    tasks = tuple(Task(number, state, f"w{number}", trace) for number, (state, trace) in enumerate(states))
    cluster = FakeCluster(PLAN)
    monkeypatch.setattr(cluster, "status", lambda name: ConnectorStatus("RUNNING", "", tasks))
    record = drained(cluster)
    assert record.reasons[0].code == ReasonCode.OUT_OF_MEMORY
    assert record.reasons[0].figures == {"failed": 1, "tasks": 3}
    (cell,) = summarize([CELL], [record])
    assert cell.verdict.startswith("1 of 3 tasks FAILED: out of memory, Java heap space (consumer.override.max.poll.")
    assert "give the workers more heap (SINKBENCH_CONNECT_HEAP)" in cell.verdict


def test_workers_that_die_while_their_connector_is_stopped_are_why_it_made_no_progress() -> None:
    cluster = FakeCluster(PLAN, stuck=True, exit_code=3)
    cluster.stop_connector = lambda *names: cluster.dead.append("connect-2")
    record = drained(cluster)
    assert codes(record)[0] == ReasonCode.OUT_OF_MEMORY
    assert record.invalid[0].startswith("connect-2 died, out of memory")
    assert ReasonCode.NO_PROGRESS in codes(record)
