"""A claim's plan, cut down to what its claims are about; that every claim finds its cells there is in test_models."""

from sinkbench.claims.models import Claim
from sinkbench.claims.narrowing import narrowed
from sinkbench.cli.plans import read_plan
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan, kafka_loads
from tests.unit.claims.test_verdict import A, claim

BULK, JDBC = "elasticsearch/camel-bulk", "postgres/jdbc"
SIX = {"label": JDBC, "tasks": 6}
COUNT = claim({"kind": "count", "figure": "lost", "of": SIX, "equals": 0})
RATIO = claim({"kind": "ratio", "of": [SIX], "to": {"label": BULK}, "at_least": 2})
EFFICIENT = claim({"kind": "threshold", "figure": "efficiency", "of": SIX, "at_least": 0.5})
PLAN = Plan.model_validate(
    {
        "name": "p",
        "pipelines": [BULK, JDBC, "postgres/jdbc-pgbouncer"],
        "multiples": [1, 2],
        "limits": True,
        "trials": 5,
    }
)


def cut(*claims: Claim) -> tuple[list[str], int, bool]:
    """The cells that are left on three workers, the trials of each, and whether limits are measured."""
    plan = narrowed(PLAN, claims, 3)
    return [cell.key for cell in expand(plan, 3)], plan.trials, plan.limits


def test_only_the_cells_are_left_that_the_claims_name() -> None:
    assert cut(COUNT) == ([f"{JDBC}@3x2"], 1, False)
    assert cut(COUNT, RATIO) == ([f"{BULK}@3x1", f"{BULK}@3x2", f"{JDBC}@3x2"], 5, False)
    assert cut(EFFICIENT) == ([f"{JDBC}@3x2"], 5, True)
    assert [narrowed(PLAN, [RATIO], 3, trials).trials for trials in (None, 3, 6)] == [5, 3, 5]
    # What is counted needs no warm JVM.
    assert [narrowed(PLAN, [each], 3).drain.warm_up_seconds for each in (COUNT, RATIO)] == [10, 60]
    # One of three pipelines has the time of all.
    budgets = [each.drain.warm_up_budget_seconds for each in (narrowed(PLAN, [EFFICIENT], 3), PLAN)]
    assert budgets[0] == 3 * budgets[1] > 0
    # No cell is named, and a plan needs one.
    assert cut(claim({"kind": "failure", "of": A, "code": "tasks_failed"})) == (
        [f"{BULK}@3x1", f"{BULK}@3x2"],
        1,
        False,
    )


def test_faults_shares_readers_and_loads_on_kafka_are_those_of_the_claims() -> None:
    fault = claim({"kind": "count", "figure": "lost", "of": {"label": JDBC, "fault": "kill kafka"}, "equals": 0})
    faults = expand(narrowed(read_plan("faults"), [fault], 3), 3)
    assert [cell.key for cell in faults] == [f"{JDBC}@3x1@1000!kill kafka"]
    share = claim({"kind": "threshold", "figure": "p99_ms", "of": {"label": JDBC, "of_capacity": 0.8}, "at_most": 9})
    curve = expand(narrowed(read_plan("load-curve"), [share], 3), 3)
    assert [cell.key for cell in curve] == [f"{JDBC}@3x1", f"{JDBC}@3x1@80%"]
    read = claim({"kind": "count", "figure": "lost", "of": {"label": JDBC, "readers": 2}, "equals": 0})
    assert [cell.key for cell in expand(narrowed(read_plan("readers"), [read], 3), 3)] == [f"{JDBC}@3x1+2g"]
    alone = claim({"kind": "threshold", "of": {"label": "1 broker, 0.4 cores"}, "at_least": 1})
    kafka = narrowed(read_plan("brokers"), [alone], 1)
    assert ([each.label for each in kafka_loads(kafka)], len(kafka.pipelines)) == (["1 broker, 0.4 cores"], 1)
    assert narrowed(read_plan("brokers"), [alone], 1, 3).trials == 4
    # The one beside them need not become warm.
    assert (kafka.drain.warm_up_seconds, kafka.drain.warm_up_budget_seconds, kafka.trials) == (10, 0, 5)
