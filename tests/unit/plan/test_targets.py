"""Target files that a plan names: found beside it or in the checkout, and refused where a sink cannot take them."""

import hashlib
from pathlib import Path

import pytest

from sinkbench.errors import PlanError
from sinkbench.plan.cells import expand
from sinkbench.plan.checks import check_targets, file_hashes, refuse
from sinkbench.plan.plan import Plan, load_plan
from sinkbench.runs.store import RunFolder
from tests.support.trials import connectors_in


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    pipelines = ("postgres/jdbc", "elasticsearch/camel-bulk", "tiny/one")
    connectors_in(tmp_path / "checkout", *pipelines, text='{"name": "x", "config": {}}')
    (tmp_path / "checkout" / "postgres").mkdir()
    (tmp_path / "checkout" / "postgres" / "indexed.sql").write_text("CREATE TABLE tides ();")
    (tmp_path / "mine").mkdir()
    return tmp_path / "checkout"


def read_text(checkout: Path, text: str, pipelines: str = "[postgres/jdbc]") -> Plan:
    path = checkout.parent / "mine" / "plan.yaml"
    path.write_text(f"pipelines: {pipelines}\n{text}\n")
    return load_plan(path, checkout / "connectors")


def read(checkout: Path, *entries: str) -> Plan:
    return read_text(checkout, "", "".join(f"\n  - {entry}" for entry in entries))


def test_a_target_of_the_checkout_is_named_as_every_checkout_has_it(checkout: Path) -> None:
    plan = read(checkout, "{pipeline: postgres/jdbc, target: postgres/indexed.sql}")
    assert plan.pipelines[0].target == "postgres/indexed.sql"
    (cell,) = expand(plan, 3)
    assert (cell.target, cell.identity()["target"]) == ("postgres/indexed.sql", "postgres/indexed.sql")


def test_a_target_that_is_not_there_and_two_of_one_name_are_refused(checkout: Path) -> None:
    (checkout.parent / "mine" / "indexed.sql").write_text("")
    with pytest.raises(PlanError, match=r"plan\.yaml:2: target: there is no file 'gone\.sql', next to the plan or in"):
        read(checkout, "{pipeline: postgres/jdbc, target: gone.sql}")
    two = ("a, target: postgres/indexed.sql", "b, target: indexed.sql")
    with pytest.raises(PlanError, match=r"two targets of one name, postgres/indexed\.sql and .*; give one of"):
        read(checkout, *(f"{{pipeline: postgres/jdbc, label: {label}}}" for label in two))


@pytest.mark.parametrize("name", ["a" * 300, "b/" * 3000, '"c\\0d"'])
def test_a_name_that_no_file_can_have_is_refused_with_its_line(name: str, checkout: Path) -> None:
    with pytest.raises(PlanError, match=r"plan\.yaml:2: target: there is no file .{1,60}, next to the plan or in"):
        read(checkout, f"{{pipeline: postgres/jdbc, target: {name}}}")


@pytest.mark.parametrize(
    ("pipeline", "said"),
    [
        ("tiny/one", "the sink tiny takes no target; leave it out"),
        ("elasticsearch/camel-bulk", r"takes no target postgres/indexed\.sql; name a file that ends in \.json"),
    ],
)
def test_a_sink_that_cannot_take_a_target_says_so(pipeline: str, said: str, checkout: Path) -> None:
    plan = read(checkout, f"{{pipeline: {pipeline}, target: postgres/indexed.sql}}")
    with pytest.raises(PlanError, match=rf"plan\.yaml:2: .*{said}"):
        refuse(check_targets(plan, {"postgres": ".sql", "elasticsearch": ".json", "tiny": None}))


def test_a_run_keeps_the_target_and_its_hash(checkout: Path, tmp_path: Path) -> None:
    plan = read(checkout, "{pipeline: postgres/jdbc, target: postgres/indexed.sql}", "elasticsearch/camel-bulk")
    folder = RunFolder.create(tmp_path / "results", plan, checkout / "connectors")
    kept = folder.path / "targets" / "postgres" / "indexed.sql"
    assert kept.read_text() == "CREATE TABLE tides ();"
    assert file_hashes(plan, checkout) == {"postgres/indexed.sql": hashlib.sha256(kept.read_bytes()).hexdigest()}
    (checkout / "postgres" / "indexed.sql").unlink()
    with pytest.raises(PlanError, match=r"postgres/indexed\.sql: there is no such file any more; restore it"):
        file_hashes(plan, checkout)


def test_the_plan_of_a_run_names_the_checkouts_queries_not_its_own_copy(checkout: Path, tmp_path: Path) -> None:
    (checkout / "queries").mkdir()
    (checkout / "queries" / "one.yaml").write_text("asks: What?\nmember: {a: 1}\n")
    plan = read_text(checkout, "queries: queries")
    folder = RunFolder.create(tmp_path / "results", plan, checkout / "connectors")
    assert (folder.path / "queries" / "one.yaml").exists()
    kept = load_plan(folder.plan_path, checkout / "connectors", kept=True)
    assert (kept.queries, kept.sha256) == (plan.queries, plan.sha256) == ("queries", plan.sha256)
    assert list(file_hashes(plan, checkout)) == ["queries/one.yaml"]


@pytest.mark.parametrize("load", ["records: orders.json", "changes: {inserts: 0.5, updates: 0.5}"])
def test_queries_are_for_records_whose_answers_are_known(load: str, checkout: Path) -> None:
    (checkout / "queries").mkdir()
    said = rf"plan\.yaml:2: queries are checked against .*; leave out queries or load\.{load.partition(':')[0]}"
    with pytest.raises(PlanError, match=said):
        read_text(checkout, f"queries: queries\nload: {{{load}}}")


def test_other_records_take_the_queries_out_of_a_plan(checkout: Path) -> None:
    (checkout / "queries").mkdir()
    sustain = "mode: sustain\nsustain: {records_per_second: 5, reads_per_second: [0, 2]}"
    plan = read_text(checkout, f"queries: queries\n{sustain}").with_records("orders.json", None)
    assert (plan.queries, plan.sustain.reads_per_second) == (None, ())
    assert [cell.reads for cell in expand(plan, 3)] == [None]
