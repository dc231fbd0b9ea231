"""Which faults are refused before anything is started."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sinkbench.errors import PlanError
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.race.faults import check_faults

THEIRS, OURS = SimpleNamespace(name="external", breakable=False), SimpleNamespace(name="local", breakable=True)


def check(stack: Any, *faults: dict[str, object], pipeline: str = "postgres/jdbc") -> None:
    load = {"records_per_second": 1_000, "seconds": 20}
    keys = {"name": "p", "mode": "faults", "pipelines": [pipeline], "sustain": load, "faults": list(faults)}
    plan = Plan.model_validate(keys)
    check_faults(plan, expand(plan, 3), stack)


def test_nothing_of_somebody_elses_is_killed() -> None:
    of_connector = [{"what": what} for what in ("none", "restart", "pause", "rename", "join", "refuse")]
    check(THEIRS, *of_connector)
    for what, whom in (("kill", "worker"), ("stop", "kafka"), ("freeze", "sink")):
        with pytest.raises(PlanError, match=f"'{what} {whom}' cannot be done on stack external"):
            check(THEIRS, *of_connector, {"what": what, "whom": whom})
        check(OURS, {"what": what, "whom": whom})


def test_a_pooler_is_none_of_another_sinks_business() -> None:
    fault = {"what": "kill", "whom": "pgbouncer"}
    check(OURS, fault)
    with pytest.raises(PlanError, match="'kill pgbouncer' would not touch elasticsearch/camel-bulk"):
        check(OURS, fault, pipeline="elasticsearch/camel-bulk")
