"""Which faults are refused before anything is started."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sinkbench.errors import PlanError, StackError
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.race.faults import check_faults, prepare_faults
from sinkbench.settings import CHECKOUT
from sinkbench.stack import ProxyTarget
from sinkbench.topology import Topology, load_topology

ENTRANCES = {"postgres": ProxyTarget("127.0.0.1", 5432, {"POSTGRES_HOST": "{host}", "POSTGRES_PORT": "{port}"})}


def can(**capabilities: object) -> SimpleNamespace:
    """Faults with these capabilities alone."""
    none = {"isolation": None, "proxies": None, "small_disks": lambda sink: None, "promotion": lambda sink: None}
    return SimpleNamespace(**{**none, **capabilities})


THEIRS = SimpleNamespace(name="external", layout=None, faults=None)
IN_CONTAINERS = SimpleNamespace(name="compose", layout=None, faults=can(isolation=object()))
OURS = SimpleNamespace(
    name="local",
    layout=load_topology("published", CHECKOUT, CHECKOUT),
    faults=can(
        proxies=SimpleNamespace(targets=ENTRANCES, check=lambda: None),
        small_disks=lambda sink: SimpleNamespace(check=lambda: None),
        promotion=lambda sink: SimpleNamespace(),
    ),
)


def check(
    stack: Any, *faults: dict[str, object], pipeline: str = "postgres/jdbc", connectors: Path = CHECKOUT / "connectors"
) -> None:
    load = {"records_per_second": 1_000, "seconds": 20}
    keys = {"name": "p", "mode": "faults", "pipelines": [pipeline], "sustain": load, "faults": list(faults)}
    plan = Plan.model_validate(keys)
    check_faults(plan, expand(plan, 3), stack, connectors)


def test_services_of_an_external_stack_are_not_killed() -> None:
    of_connector = [{"what": what} for what in ("none", "restart", "pause", "rename", "join", "refuse")]
    check(THEIRS, *of_connector)
    for what, target in (("kill", "worker"), ("stop", "kafka"), ("freeze", "sink")):
        with pytest.raises(PlanError, match=f"'{what} {target}' cannot be done on stack external"):
            check(THEIRS, *of_connector, {"what": what, "target": target})
        check(OURS, {"what": what, "target": target})


def test_a_pooler_is_none_of_another_sinks_business() -> None:
    fault = {"what": "kill", "target": "pgbouncer"}
    check(OURS, fault)
    with pytest.raises(PlanError, match="'kill pgbouncer' would not touch elasticsearch/camel-bulk"):
        check(OURS, fault, pipeline="elasticsearch/camel-bulk")


def test_a_node_is_one_of_the_topology() -> None:
    for target in ("kafka-3", "connect-6", "postgres-2", "postgres"):
        check(OURS, {"what": "kill", "target": target})
    check(OURS, {"what": "stop", "target": "elasticsearch-3"}, pipeline="elasticsearch/camel-bulk")
    with pytest.raises(PlanError, match="topology published has no node kafka-4; did you mean 'kafka-3'"):
        check(OURS, {"what": "kill", "target": "kafka-4"})
    with pytest.raises(PlanError, match="topology small has no node connect-4; did you mean 'connect-3'"):
        check(SimpleNamespace(**{**vars(OURS), "layout": Topology()}), {"what": "kill", "target": "connect-4"})
    with pytest.raises(PlanError, match="stack compose knows no nodes by name; hit kafka instead"):
        check(IN_CONTAINERS, {"what": "kill", "target": "kafka-2"})
    with pytest.raises(PlanError, match="would not touch postgres/jdbc, which does not write through elasticsearch-2"):
        check(OURS, {"what": "kill", "target": "elasticsearch-2"})


def test_a_replica_is_promoted_where_there_is_one() -> None:
    fault = {"what": "promote"}
    check(OURS, fault)
    with pytest.raises(PlanError, match="the sink elasticsearch has no replica that could be promoted"):
        check(OURS, fault, pipeline="elasticsearch/camel-bulk")
    for stack in (IN_CONTAINERS, THEIRS):
        with pytest.raises(PlanError, match=f"'promote sink' cannot .* on stack {stack.name}, which has no replica"):
            check(stack, fault)


@pytest.mark.parametrize("fault", [{"what": "delay"}, {"what": "cut"}, {"what": "throttle"}])
def test_a_proxy_stands_only_where_there_is_a_way_in_for_it(fault: dict[str, object]) -> None:
    check(OURS, fault)
    for stack in (THEIRS, IN_CONTAINERS):
        said = f"'{fault['what']} .*cannot be done on stack {stack.name} from here: only a race on the stack local"
        with pytest.raises(PlanError, match=said):
            check(stack, fault)


def test_only_a_container_can_lose_its_network() -> None:
    fault = {"what": "isolate", "target": "worker"}
    check(IN_CONTAINERS, fault)
    with pytest.raises(PlanError, match="stack local, whose services share one network; freeze it instead"):
        check(OURS, fault)
    with pytest.raises(PlanError, match="stack external, whose services are other people's"):
        check(THEIRS, fault)


def test_a_sink_refuses_for_reasons_that_it_has() -> None:
    read_only, no_right, cut_off = (
        {"what": "refuse", "why": why} for why in ("read only", "no right", "no connection")
    )
    check(OURS, read_only, no_right, cut_off)
    check(OURS, read_only, pipeline="elasticsearch/camel-bulk")
    with pytest.raises(PlanError, match="stack external: it closes the connections of everybody"):
        check(THEIRS, cut_off)
    with pytest.raises(PlanError, match="elasticsearch cannot be set to refuse records so, only for: read only;"):
        check(OURS, no_right, pipeline="elasticsearch/camel-bulk")


def test_a_disk_is_filled_where_there_is_a_small_one_or_the_sink_has_a_guard_of_its_own() -> None:
    fault = {"what": "fill"}
    check(OURS, fault)
    for stack in (OURS, IN_CONTAINERS, THEIRS):
        check(stack, fault, pipeline="elasticsearch/camel-bulk")
    for stack in (IN_CONTAINERS, THEIRS):
        with pytest.raises(PlanError, match=f"'fill sink' cannot be done to postgres/jdbc on stack {stack.name}: "):
            check(stack, fault)


def test_a_proxy_stands_before_no_address_that_a_connector_file_has_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "postgres" / "jdbc.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"config": {"connection.url": "jdbc:postgresql://db:${env:POSTGRES_PORT}/x"}}))
    own = r"take it from \$\{env:POSTGRES_HOST\} and \$\{env:POSTGRES_PORT\}, or name others under 'pipelines'$"
    with pytest.raises(PlanError, match=own):
        check(OURS, {"what": "cut"}, connectors=tmp_path)
    # The local stack knows of this sink, but not where its workers find it.
    with pytest.raises(PlanError, match=r"an address of its own; name others under 'pipelines'$"):
        check(OURS, {"what": "cut"}, pipeline="elasticsearch/camel-bulk")


def test_without_a_proxy_and_what_builds_it_the_plan_is_refused_in_one_line() -> None:
    def missing() -> None:
        raise StackError("Go 1.23 or newer builds toxiproxy: found none; install the package golang-go")

    bare = SimpleNamespace(name="local", faults=can(proxies=SimpleNamespace(targets=ENTRANCES, check=missing)))
    check(bare, {"what": "restart"})
    with pytest.raises(PlanError, match=r"'cut sink': Go 1.23 or newer .*; install the package golang-go$") as refused:
        check(bare, {"what": "cut"})
    assert len(str(refused.value).splitlines()) == 1


def test_the_proxy_is_made_ready_where_a_fault_needs_it() -> None:
    said: list[str] = []
    stack: Any = SimpleNamespace(faults=can(proxies=SimpleNamespace(prepare=lambda say: say("building"))))
    for what, expected in (("pause", []), ("delay", ["building"])):
        load = {"records_per_second": 1_000, "seconds": 20}
        keys = {"name": "p", "mode": "faults", "pipelines": ["postgres/jdbc"], "sustain": load}
        plan = Plan.model_validate({**keys, "faults": [{"what": "none"}, {"what": what}]})
        prepare_faults(expand(plan, 3), stack, said.append)
        assert said == expected
