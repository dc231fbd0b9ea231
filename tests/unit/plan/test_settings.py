"""What a plan sets a sink's services to: read, carried to its cells, and refused where a sink cannot be set so."""

from pathlib import Path

import pytest

from sinkbench.errors import PlanError
from sinkbench.plan.cells import expand
from sinkbench.plan.checks import check_settings, check_variables, refuse
from sinkbench.plan.plan import Plan
from sinkbench.sinks import sink_kinds
from tests.support.trials import connectors_in, plan_in

SETTABLE = {**{kind.name: kind.settable for kind in sink_kinds()}, "tiny": {}}
BULK = "elasticsearch/camel-bulk"
QUICK = "{postgres: {synchronous_commit: off}}"
POOLED = "{pgbouncer: {pool_mode: session, default_pool_size: 20}}"


def read(folder: Path, *entries: str, more: str = "") -> Plan:
    connectors = connectors_in(folder, "postgres/jdbc", "elasticsearch/camel-bulk", "tiny/one")
    return plan_in(folder, "pipelines:\n" + "".join(f"  - {entry}\n" for entry in entries) + more, connectors)


def refusal(plan: Plan, stack_file: str | None = None) -> str:
    with pytest.raises(PlanError) as refused:
        refuse(check_settings(plan, SETTABLE, lambda service: stack_file))
    return str(refused.value)


def with_settings(folder: Path, text: str, pipeline: str = "postgres/jdbc", more: str = "") -> Plan:
    return read(folder, f"{{pipeline: {pipeline}, settings: {text}}}", more=more)


def test_settings_and_acks_of_a_pipeline_reach_its_cells(tmp_path: Path) -> None:
    own = f"{{pipeline: postgres/jdbc, label: quick, acks: 1, settings: {QUICK}}}"
    quick, bulk = expand(read(tmp_path, own, "elasticsearch/camel-bulk", more="load: {acks: 0}\n"), 3)
    assert (quick.acks, quick.settings) == ("1", {"postgres": {"synchronous_commit": "off"}})
    assert (bulk.acks, bulk.settings) == ("0", {})
    assert quick.identity().items() >= {"settings": quick.settings, "acks": "1"}.items()


def test_settings_are_shown_and_part_of_the_digest(tmp_path: Path) -> None:
    plan, bare = with_settings(tmp_path, QUICK), read(tmp_path, "postgres/jdbc")
    hasty = read(tmp_path, "{pipeline: postgres/jdbc, acks: 1}")
    assert "synchronous_commit: 'off'" in plan.show() or "synchronous_commit: off" in plan.show()
    assert len({plan.sha256, bare.sha256, hasty.sha256}) == 3
    again = plan_in(tmp_path, plan.show(), tmp_path / "connectors")
    assert (again.pipelines[0].settings, again.sha256) == (plan.pipelines[0].settings, plan.sha256)


@pytest.mark.parametrize(
    ("pipeline", "text", "said"),
    [
        ("postgres/jdbc", "{postgre: {fsync: off}}", "has no service 'postgre' to set; did you mean 'postgres'?"),
        ("postgres/jdbc", "{postgres: {synchronous_comit: off}}", "postgres has no setting 'synchronous_comit'; did"),
        ("postgres/jdbc", "{postgres: {synchronous_commit: maybe}}", "must be one of off, local, remote_write, on"),
        ("postgres/jdbc", "{pgbouncer: {default_pool_size: 0}}", "must be a whole number from 1 to 10000, found '0'"),
        (BULK, "{elasticsearch: {index.translog.sync_interval: 5}}", "must be a time such as 500ms, 5s or 1m, found"),
        ("tiny/one", "{tiny: {speed: 1}}", "the sink tiny has no service 'tiny' to set; leave it out"),
    ],
)
def test_what_a_sink_cannot_be_set_to_is_refused_with_its_line(
    pipeline: str, text: str, said: str, tmp_path: Path
) -> None:
    refused = refusal(with_settings(tmp_path, text, pipeline))
    assert [each for each in ("mine.yaml:2: ", said) if each not in refused] == []


@pytest.mark.parametrize(("text", "service"), [(QUICK, "postgres"), (POOLED, "pgbouncer")])
def test_services_of_external_stacks_are_not_set(text: str, service: str, tmp_path: Path) -> None:
    said = f"mine.yaml:2: {service} is not set on stack clusters.yaml, which is ext"
    assert said in refusal(with_settings(tmp_path, text), "clusters.yaml")


def test_a_fault_that_starts_a_service_again_cannot_keep_what_it_was_set_to(tmp_path: Path) -> None:
    load = "mode: faults\nsustain: {records_per_second: 100}\nfaults:\n  - {what: kill, target: %s, label: gone}\n"
    # The pooler reads its file again when it is told of another primary.
    for lost in (load % "pgbouncer", (load % "sink").replace("kill", "promote")):
        said = "mine.yaml:2: pgbouncer would lose these settings in the fault 'gone'"
        assert said in refusal(with_settings(tmp_path, POOLED, more=lost))
    for text, target in ((POOLED, "worker"), (QUICK, "sink")):
        refuse(check_settings(with_settings(tmp_path, text, more=load % target), SETTABLE))


def test_variables_of_run_scripts_reach_their_cells_and_are_checked(tmp_path: Path) -> None:
    entries = ["postgres/jdbc", "{pipeline: elasticsearch/camel-bulk, variables: {KAFKA_HEAP: 1g}}"]
    arms = "arms: {a: {}, b: {variables: {KAFKA_HEAP: 2g, CONNECT_HEAP: 1g}}}\n"
    plan = read(tmp_path, *entries, more=arms)
    cells = expand(plan, 3)
    b = (("CONNECT_HEAP", "1g"), ("KAFKA_HEAP", "2g"))
    assert [cell.variables for cell in cells] == [(), (("KAFKA_HEAP", "1g"),), b, b]
    assert [*check_variables(plan, {"KAFKA_HEAP", "CONNECT_HEAP"}, "")] == []
    (wrong,) = check_variables(plan, {"KAFKA_HEAP", "CONNECT_HEPA"}, "")
    assert "mine.yaml:2: variables: no run script has a variable 'CONNECT_HEAP'; did you mean" in wrong
    assert all(line.endswith(": elsewhere") for line in check_variables(plan, (), "elsewhere"))
    (refused,) = check_variables(read(tmp_path, entries[1], more="mode: capacity\n"), {"KAFKA_HEAP"}, "")
    assert "mine.yaml:3: variables need mode drain, rescale or sustain" in refused
