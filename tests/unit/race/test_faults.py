"""Which faults are refused before anything is started."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sinkbench.errors import PlanError, StackError
from sinkbench.plan.cells import expand
from sinkbench.plan.checks import refuse
from sinkbench.race.preparation import check_faults, prepare_faults
from sinkbench.settings import CHECKOUT
from sinkbench.stack import ProxyTarget
from sinkbench.topology import Topology, load_topology
from tests.support.trials import plan_of

ENTRANCES = {"postgres": ProxyTarget("127.0.0.1", 5432, {"POSTGRES_HOST": "{host}", "POSTGRES_PORT": "{port}"})}


def can(**capabilities: object) -> SimpleNamespace:
    """Faults with these capabilities alone."""
    none = {"can_isolate": False, "proxies": None, "small_disks": lambda sink: None, "promotion": lambda sink: None}
    return SimpleNamespace(**{**none, **capabilities})


THEIRS = SimpleNamespace(name="external", layout=None, faults=None)
IN_CONTAINERS = SimpleNamespace(name="compose", layout=None, faults=can(can_isolate=True))
OURS = SimpleNamespace(
    name="local",
    layout=load_topology("published", CHECKOUT, CHECKOUT),
    faults=can(
        proxies=SimpleNamespace(targets=ENTRANCES, check=lambda: None),
        small_disks=lambda sink: SimpleNamespace(check=lambda: None),
        promotion=lambda sink: SimpleNamespace(),
    ),
)


JDBC, BULK = "postgres/jdbc", "elasticsearch/camel-bulk"
LOAD = {"records_per_second": 1_000, "seconds": 20}


def check(
    stack: Any, *faults: dict[str, object], pipeline: str = JDBC, connectors: Path = CHECKOUT / "connectors"
) -> None:
    plan = plan_of(pipeline, mode="faults", sustain=LOAD, faults=faults)
    refuse(check_faults(plan, expand(plan, 3), stack, connectors))


KILL, FILL, PROMOTE = {"what": "kill", "target": "pgbouncer"}, {"what": "fill"}, {"what": "promote"}
EVERYWHERE = [{"what": what} for what in ("none", "restart", "pause", "rename", "join", "refuse")]
SMALL = SimpleNamespace(**{**vars(OURS), "layout": Topology()})


@pytest.mark.parametrize(
    ("stack", "pipeline", "faults"),
    [
        (THEIRS, JDBC, EVERYWHERE),
        (OURS, JDBC, [{"what": "stop", "target": "kafka"}, {"what": "freeze", "target": "sink"}, KILL]),
        (OURS, JDBC, [{"what": "kill", "target": each} for each in ("kafka-3", "connect-6", "postgres-2")]),
        (OURS, BULK, [{"what": "stop", "target": "elasticsearch-3"}]),
        (OURS, JDBC, [PROMOTE, FILL]),
        (OURS, JDBC, [{"what": "delay"}, {"what": "cut"}, {"what": "throttle"}]),
        (IN_CONTAINERS, JDBC, [{"what": "isolate", "target": "worker"}]),
        (OURS, JDBC, [{"what": "refuse", "why": why} for why in ("read only", "no right", "no connection")]),
        (OURS, BULK, [{"what": "refuse"}, FILL]),
        # The sink has a guard of its own.
        (IN_CONTAINERS, BULK, [FILL]),
        (THEIRS, BULK, [FILL]),
    ],
)
def test_what_a_stack_can_do_is_not_refused(stack: Any, pipeline: str, faults: list[dict[str, object]]) -> None:
    check(stack, *faults, pipeline=pipeline)


@pytest.mark.parametrize(
    ("stack", "pipeline", "fault", "said"),
    [
        *(
            (THEIRS, JDBC, {"what": what, "target": target}, "stack external are other people's")
            for what, target in (("kill", "worker"), ("stop", "kafka"), ("freeze", "sink"), ("isolate", "worker"))
        ),
        (OURS, BULK, KILL, "'kill pgbouncer' cannot be done to elasticsearch/camel-bulk: it does not write through"),
        (OURS, JDBC, {**KILL, "target": "kafka-4"}, "published has no node kafka-4; did you mean 'kafka-3'"),
        (SMALL, JDBC, {**KILL, "target": "connect-4"}, "has no node connect-4; did you mean 'connect-3'"),
        (IN_CONTAINERS, JDBC, {**KILL, "target": "kafka-2"}, "stack compose knows no nodes by name"),
        (OURS, JDBC, {**KILL, "target": "elasticsearch-2"}, "does not write through elasticsearch-2"),
        (OURS, BULK, PROMOTE, "the sink elasticsearch has no replica that could be promoted"),
        (THEIRS, JDBC, PROMOTE, "no replica could be promoted on stack external"),
        (THEIRS, JDBC, {"what": "delay"}, "stack external has no proxies from here"),
        (IN_CONTAINERS, JDBC, {"what": "throttle"}, "stack compose has no proxies from here"),
        (OURS, JDBC, {"what": "isolate", "target": "worker"}, "share one network; freeze it instead"),
        (THEIRS, JDBC, {"what": "refuse", "why": "no connection"}, "closes the connections of everybody"),
        (OURS, BULK, {"what": "refuse", "why": "no right"}, "cannot be set to refuse records so, only for: read only;"),
        (THEIRS, JDBC, FILL, "none is small on stack external; race on the stack local"),
        # The local stack knows of this sink, but not where its workers find it.
        (OURS, BULK, {"what": "cut"}, "an address of its own; name others under 'pipelines'$"),
    ],
)
def test_what_a_stack_cannot_do_is_refused(stack: Any, pipeline: str, fault: dict[str, object], said: str) -> None:
    with pytest.raises(PlanError, match=said) as refused:
        check(stack, fault, pipeline=pipeline)
    assert "plan p: '" in str(refused.value)


def test_a_proxy_stands_before_no_address_that_a_connector_file_has_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "postgres" / "jdbc.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"config": {"connection.url": "jdbc:postgresql://db:${env:POSTGRES_PORT}/x"}}))
    own = r"take it from \$\{env:POSTGRES_HOST\} and \$\{env:POSTGRES_PORT\}, or name others under 'pipelines'$"
    with pytest.raises(PlanError, match=own):
        check(OURS, {"what": "cut"}, connectors=tmp_path)


def test_without_a_proxy_and_what_builds_it_the_plan_is_refused_in_one_line() -> None:
    def missing() -> None:
        raise StackError("Go 1.23 or newer builds toxiproxy: found none; install the package golang-go")

    proxies = SimpleNamespace(targets=ENTRANCES, check=missing)
    bare = SimpleNamespace(name="local", layout=None, faults=can(proxies=proxies))
    check(bare, {"what": "restart"})
    with pytest.raises(PlanError, match=r"^.*'cut sink' .*: Go 1.23 or newer .*; install the package golang-go\Z"):
        check(bare, {"what": "cut"})


def test_the_proxy_is_made_ready_where_a_fault_needs_it() -> None:
    said: list[str] = []
    stack: Any = SimpleNamespace(faults=can(proxies=SimpleNamespace(prepare=lambda say: say("building"))))
    for what, expected in (("pause", []), ("delay", ["building"])):
        plan = plan_of(mode="faults", sustain=LOAD, faults=[{"what": "none"}, {"what": what}])
        prepare_faults(expand(plan, 3), stack, said.append)
        assert said == expected
