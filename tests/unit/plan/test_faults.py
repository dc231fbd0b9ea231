"""The faults of a plan: what is refused, with its line, and which cells they make."""

from pathlib import Path

import pytest

from sinkbench.errors import PlanError
from sinkbench.plan.cells import expand
from sinkbench.plan.faults import PlanFault
from sinkbench.plan.plan import Plan, load_plan
from sinkbench.settings import CHECKOUT
from tests.support.trials import connectors_in, plan_in

BARE = """
mode: faults
pipelines: [postgres/jdbc, elasticsearch/camel-bulk]
sustain: {records_per_second: 1000, seconds: 20}
faults:
"""


def read(folder: Path, text: str) -> Plan:
    return plan_in(folder, text.lstrip(), connectors_in(folder, "postgres/jdbc", "elasticsearch/camel-bulk"))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("{what: kil, target: worker}", "what must be"),
        ("{what: kill}", "'kill' needs 'target': worker, workers, kafka, sink, pgbouncer"),
        ("{what: none, target: kafka}", "'none' cannot hit 'kafka'; leave 'target' out"),
        ("{what: pause, times: 3}", "'times' is for restart, found pause; leave it out"),
        ("{what: pause, at_seconds: 5, at_share: 0.5}", "at_seconds and at_share both say when"),
        ("{what: pause, at_seconds: 25}", "'pause' begins 25 s into a load of 20 s"),
        ("{what: pause, at_share: 0}", "let it begin 3 s after the start at least"),
        ("{what: kill, target: kafak}", "or a node, such as kafka-2"),
        ("{what: kill, target: kafka-2, seconds: 13}", "kafka-2 cannot be gone for more than 12 s"),
        ("{what: delay, milliseconds: 0.3}", "milliseconds must be a multiple of 0.5"),
        ("{what: cut, how: slowly}", "how must be 'reject' or 'drop'"),
        ("{what: refuse, why: nothing}", "why must be 'read only', 'no right' or 'no connection'"),
        ("{what: cut, seconds: null}", "only delay and throttle may last until all is stored, found cut; give seconds"),
        ("{what: throttle, bytes_per_second: 1500}", "bytes_per_second must be a multiple of 1000"),
        ("{what: freeze, target: kafka, seconds: 40}", "the load generator gives a record up after 30 s"),
        ("{what: pause, pipelines: [postgres/jbdc]}", "there is no pipeline 'postgres/jbdc' in this plan; did you"),
        ("{what: pause, when: 3}", "unknown key 'when' in faults"),
    ],
)
def test_a_fault_that_cannot_be_is_refused_with_its_line(tmp_path: Path, fault: str, said: str) -> None:
    with pytest.raises(PlanError) as refused:
        read(tmp_path, f"{BARE}  - {fault}\n")
    assert said in str(refused.value)
    assert "mine.yaml:5: " in str(refused.value), refused.value


def test_faults_are_for_their_mode_and_the_mode_for_faults(tmp_path: Path) -> None:
    fault = "  - {what: pause}\n"
    for text, said in (
        (BARE.replace("mode: faults", "mode: sustain") + fault, "unknown key 'faults' in plan; only for mode faults"),
        (f"{BARE.rstrip()} []\n", "faults must not be empty"),
        (BARE + fault + fault, "two faults are called 'pause'; give one a label"),
    ):
        with pytest.raises(PlanError, match=said):
            read(tmp_path, text)


def test_each_pipeline_has_a_cell_for_each_fault_that_applies_to_it(tmp_path: Path) -> None:
    faults = "  - {what: none}\n  - {what: kill, target: worker}\n  - {what: refuse, pipelines: [postgres/jdbc]}\n"
    plan = read(tmp_path, BARE + faults)
    cells, jdbc, bulk = expand(plan, 3), "postgres/jdbc@3x1", "elasticsearch/camel-bulk@3x1"
    both = [f"{place}@1000!{fault}" for place in (jdbc, bulk) for fault in ("none", "kill worker")]
    assert [cell.key for cell in cells] == [*both[:2], f"{jdbc}@1000!refuse sink", *both[2:]]
    # One pilot warms up all cells of a pipeline.
    assert {(cell.place, cell.mode) for cell in cells} == {(jdbc, "faults"), (bulk, "faults")}
    assert plan_in(tmp_path, plan.show(), tmp_path / "connectors").show() == plan.show()


@pytest.mark.parametrize("name", ["faults", "faults-long", "network", "sink-refuses", "killed-drain", "poison"])
def test_every_matrix_of_faults_can_be_raced_with_other_pipelines(name: str, tmp_path: Path) -> None:
    reference = [
        "elasticsearch/reference-bulk-exactly-once",
        "postgres/reference-copy-exactly-once:postgres/targets/positions.sql",
    ]
    file = CHECKOUT / "plans" / f"{name}.yaml"
    plan = load_plan(file, CHECKOUT / "connectors", reference)
    cells = expand(plan, 3)
    assert {cell.label for cell in cells} == {each.partition(":")[0] for each in reference}
    assert {cell.target for cell in cells} == {None, "postgres/targets/positions.sql"}
    only = {cell.sink for cell in cells if cell.fault is not None and cell.fault.why == "no connection"}
    assert only <= {"postgres"}
    # As it is kept with its run.
    assert plan_in(tmp_path, plan.show()).show() == plan.show()
    one = load_plan(file, CHECKOUT / "connectors", ["postgres/reference-copy"])
    assert {cell.label for cell in expand(one, 3)} == {"postgres/reference-copy"}


def test_another_pipeline_that_is_none_is_refused_by_its_option(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("pipelines: [postgres/jdbc]\n")
    connectors = connectors_in(tmp_path, "postgres/jdbc")
    for wrong, said in (
        (["postgres/jbdc"], "^--pipeline postgres/jbdc: there is none; did you mean 'postgres/jdbc'"),
        (["postgres/jdbc:no"], "^--pipeline: target: there is no file 'no'"),
        (["postgres/jdbc", "postgres/jdbc:mine.yaml"], "^--pipeline: 'postgres/jdbc' names two entries"),
    ):
        with pytest.raises(PlanError, match=said):
            load_plan(tmp_path / "mine.yaml", connectors, wrong)


def test_names_of_other_faults() -> None:
    named = {
        "restart x20": {"what": "restart", "times": 20},
        "restart": {"what": "restart", "target": "connector"},
        "refuse sink": {"what": "refuse"},
        "none": {"what": "none"},
        "delay sink 10 ms": {"what": "delay"},
        "delay sink 0.5 ms": {"what": "delay", "milliseconds": 0.5, "seconds": None},
        "delay sink 0 ms": {"what": "delay", "milliseconds": 0},
        "cut sink": {"what": "cut"},
        "cut sink drop": {"what": "cut", "how": "drop"},
        "throttle sink 100 kB/s": {"what": "throttle"},
        "throttle sink 1 kB/s": {"what": "throttle", "bytes_per_second": 1_000},
        "poison 1 % not json": {"what": "poison"},
        "poison 0.01 % nul": {"what": "poison", "share": 0.0001, "records": "nul"},
        "bounce": {"what": "stop", "target": "workers", "label": "bounce"},
    }
    assert {PlanFault.model_validate(keys).name for keys in named.values()} == set(named)


def test_a_command_needs_one_that_undoes_it_and_no_fault_has_the_keys_of_another() -> None:
    whole = {"what": "command", "command": "break it", "undo": "fix it"}
    assert PlanFault.model_validate(whole).name == "command"
    for key in ("command", "undo"):
        with pytest.raises(ValueError, match=f"'command' needs '{key}'"):
            PlanFault.model_validate({name: value for name, value in whole.items() if name != key})
    others = {
        "share": (0.1, "poison"),
        "records": ("nul", "poison"),
        "command": ("x", "command"),
        "undo": ("x", "command"),
    }
    for key, (value, what) in others.items():
        with pytest.raises(ValueError, match=f"'{key}' is for {what}, found pause"):
            PlanFault.model_validate({"what": "pause", key: value})


DRAINED = """
mode: faults
pipelines:
  - postgres/jdbc
  - {pipeline: elasticsearch/camel-bulk, backlog_records: 5_000}
sustain: {backlog_records: 90_000, seconds: 20}
faults:
  - {what: kill, target: worker, at_share: 0.05}
"""


def test_a_pipeline_drains_its_own_backlog_or_the_plans(tmp_path: Path) -> None:
    assert [(cell.key, cell.backlog, cell.offered) for cell in expand(read(tmp_path, DRAINED), 3)] == [
        ("postgres/jdbc@3x1@90000b!kill worker", 90_000, None),
        ("elasticsearch/camel-bulk@3x1@5000b!kill worker", 5_000, None),
    ]


@pytest.mark.parametrize(
    ("before", "after", "line", "said"),
    [
        ("backlog_records: 90_000", "backlog_records: 0", 5, "backlog_records must be more than 0, found 0"),
        ("mode: faults", "mode: sustain", 4, "unknown key 'backlog_records' in pipelines; only for mode faults"),
        ("backlog_records: 90_000, ", "", 1, "mode faults offers postgres/jdbc a rate, but none is given"),
        ("backlog_records: 5_000", "records_per_second: 5", 7, "'kill worker' begins 1 s into a load of 20 s"),
    ],
)
def test_a_backlog_that_cannot_be_is_refused_with_its_line(
    tmp_path: Path, before: str, after: str, line: int, said: str
) -> None:
    with pytest.raises(PlanError, match=rf"mine.yaml:{line}: ") as refused:
        read(tmp_path, DRAINED.replace(before, after))
    assert said in str(refused.value)
