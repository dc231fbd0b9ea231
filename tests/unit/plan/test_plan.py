"""The plan file: what it may hold, and what a user is told about a mistake in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sinkbench.errors import PlanError
from sinkbench.plan.cells import expand
from sinkbench.plan.forms import check_forms
from sinkbench.plan.plan import Plan, SustainPlan, load_plan
from sinkbench.plan.settings import check_settings
from sinkbench.plan.targets import check_targets
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import settable_of_sinks
from sinkbench.suggest import did_you_mean, nearest
from tests.support.counts import count

PLANS = CHECKOUT / "plans"
# Each line holds the one before ten times.
LAUGHS = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 7))


@pytest.fixture(scope="session")
def connectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("connectors")
    for name in ("elasticsearch/camel-index", "elasticsearch/camel-bulk", "postgres/jdbc", "postgres/jdbc-pgbouncer"):
        file = folder / f"{name}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text("{}")
    return folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plans")


def read(folder: Path, connectors: Path, text: str) -> Plan:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return load_plan(path, connectors, ["postgres"])


def refusal(folder: Path, connectors: Path, text: str) -> str:
    """What is said about a plan, without the folder in front of each line."""
    with pytest.raises(PlanError) as refused:
        read(folder, connectors, text)
    return str(refused.value).replace(f"{folder}/", "")


def test_an_entry_may_change_multiples_connector_keys_and_label(folder: Path, connectors: Path) -> None:
    plan = read(
        folder,
        connectors,
        """
        multiples: [1]
        pipelines:
          - postgres/jdbc
          - pipeline: postgres/jdbc
            multiples: [2, 4]
            overrides: {batch.size: 2000, flag: true, ratio: 0.5, text: a b}
            label: jdbc-2000
        """,
    )
    first, second = plan.pipelines
    assert plan.multiples_of(first) == (1,)
    assert plan.multiples_of(second) == (2, 4)
    assert second.overrides == {"batch.size": "2000", "flag": "true", "ratio": "0.5", "text": "a b"}
    assert second.shown_name == "jdbc-2000"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "pipelines: [postgres/jdbc]\nmultipels: [1]",
            "mine.yaml:2: unknown key 'multipels' in plan; did you mean 'mul",
        ),
        (
            "pipelines: [postgres/jdbc]\nload:\n  keyes: 3",
            "mine.yaml:3: unknown key 'keyes' in load; did you mean 'keys'?",
        ),
        (
            "pipelines: [postgres/jdbc]\nload:\n  records: a.ndjson\n  record_bytes: 512",
            "mine.yaml:4: 'record_bytes' is for the records of noaa; those of a.ndjson have theirs",
        ),
        (
            "pipelines: [postgres/jdbc]\nload:\n  key: customer.id",
            "mine.yaml:3: 'key' is for records of your own; name them: records",
        ),
        (
            "pipelines: [postgres/jdbc]\nload:\n  records: kafka://h:1/t\n  pace: recorded",
            "mine.yaml:4: unknown key 'pace' in load; only for mode sustain, capacity",
        ),
        (
            "pipelines: [postgres/jdbc]\ndrain: {stall: 3}",
            "mine.yaml:2: unknown key 'stall' in drain; did you mean 'stal",
        ),
        (
            "pipelines: [postgres/jdbc]\nload:\n  changes: {inserts: 1, updates: 0, delete: 0}",
            "mine.yaml:3: unknown key 'delete' in load.changes; did you mean 'deletes'?",
        ),
        (
            "pipelines: [postgres/jdbc]\nload:\n  changes: {inserts: 0.5, updates: 0.4}",
            "mine.yaml:3: load.changes: inserts 0.5, updates 0.4 and deletes 0 add up to 0.9; make that 1",
        ),
        (
            "pipelines: [postgres/jdbc]\nload:\n  changes: {inserts: 1, updates: 0}\nmode: capacity",
            "mine.yaml:3: unknown key 'changes' in load; only for mode drain",
        ),
        (
            "pipelines: [{pipeline: postgres/jdbc, probes: false}]\nload:\n  changes: {inserts: 1, updates: 0}",
            "mine.yaml:1: probes: false takes the rate from the times of rows; leave it out, or load.changes",
        ),
        (
            "pipelines:\n  - pipeline: postgres/jdbc\n    lable: x",
            "mine.yaml:3: unknown key 'lable' in pipelines; did you",
        ),
        ("pipelines: [postgres/jdbc]\n1: 2", "mine.yaml:2: unknown key 1 in plan"),
        ("pipelines: [postgres/jdcb]", "mine.yaml:1: unknown pipeline 'postgres/jdcb'; did you mean 'postgres/jdbc'?"),
        ("pipelines:\n\n  - jdbc", "mine.yaml:3: unknown pipeline 'jdbc'; did you mean 'postgres/jdbc'?"),
        ("pipelines: [../../etc/passwd]", "mine.yaml:1: unknown pipeline '../../etc/passwd'"),
        ("pipelines: [3]", "mine.yaml:1: a pipeline must be a name or a mapping, found 3"),
        ("pipelines: []", "mine.yaml:1: pipelines must not be empty"),
        ("pipelines: postgres/jdbc", "mine.yaml:1: pipelines must be a list, found 'postgres/jdbc'"),
        ("trials: 1", "mine.yaml:1: plan has no 'pipelines'"),
        ("pipelines: [{label: x}]", "mine.yaml:1: pipelines has no 'pipeline'"),
        ("pipelines: [postgres/jdbc]\ntrials: three", "mine.yaml:2: trials must be a whole number, found 'three'"),
        ("pipelines: [postgres/jdbc]\ntrials: true", "mine.yaml:2: trials must be a whole number, found true"),
        ("pipelines: [postgres/jdbc]\ntrials: 1.5", "mine.yaml:2: trials must be a whole number, found 1.5"),
        ("pipelines: [postgres/jdbc]\ntrials: -1", "mine.yaml:2: trials must be more than 0, found -1"),
        ("pipelines: [postgres/jdbc]\nmultiples: 2", "mine.yaml:2: multiples must be a list, found 2"),
        ("pipelines: [postgres/jdbc]\nmultiples:\n  - 1\n  - 0", "mine.yaml:4: multiples must be more than 0, found 0"),
        ("pipelines: [postgres/jdbc]\nmultiples: [2, 2]", "mine.yaml:2: multiples lists 2 2 times"),
        ("pipelines: [postgres/jdbc]\nload:", "mine.yaml:2: load must be a mapping, found nothing"),
        ("pipelines: [postgres/jdbc]\nload:\n  keys: -5", "mine.yaml:3: load.keys must be more than 0, found -5"),
        ("pipelines: [postgres/jdbc]\nload: {compression: gzp}", "found 'gzp'; did you mean 'gzip'?"),
        ("pipelines: [postgres/jdbc]\ndrain: {window_seconds: .nan}", "drain.window_seconds must be a finite number"),
        ("pipelines: [postgres/jdbc]\ndrain:\n  window_seconds: 400", "mine.yaml:3: window_seconds 400 does not fit"),
        ("pipelines: [postgres/jdbc]\nprobe_interval_ms: 5000", "mine.yaml:2: probe_interval_ms 5000 gives 3 samples"),
        ("pipelines: [postgres/jdbc]\nname: ../x", "mine.yaml:2: name may hold only letters"),
        ("pipelines: [postgres/jdbc]\nname: 2026-01-31", "mine.yaml:2: name must be text, found 2026-01-31"),
        ("pipelines:\n  - {pipeline: postgres/jdbc, overrides: {a: null}}", "overrides.a must be text, a number, true"),
        (
            "pipelines:\n  - pipeline: postgres/jdbc\n    overrides:\n      tasks.max: 3",
            "mine.yaml:4: 'tasks.max' is set by",
        ),
        ("pipelines: [postgres/jdbc]\ntrials: 1\ntrials: 2", "mine.yaml:3: not valid YAML: found duplicate key"),
        ("pipelines: [postgres/jdbc\ntrials: 1", "mine.yaml:2: not valid YAML: "),
        ("trials: !!int x", "mine.yaml: not valid YAML: "),
        ("trials: \x01", "mine.yaml: not valid YAML: "),
        ("[" * 5_000, "mine.yaml: is nested too deeply"),
        ("&a {pipelines: *a}", "mine.yaml:1: contains itself by an alias"),
        ("trials: 1\npipelines: &a [*a]", "mine.yaml:2: contains itself by an alias"),
        ("&a {? *a : 1}", "mine.yaml"),
        (LAUGHS, "mine.yaml: has more than 100,000 values"),
        (
            "mode: sustain\npipelines: [postgres/jdbc]",
            "mine.yaml:1: mode sustain offers postgres/jdbc a rate, but none",
        ),
        ("mode: soak\npipelines: [postgres/jdbc]", "mine.yaml:1: mode must be"),
        (
            "pipelines: [postgres/jdbc]\nsustain:\n  records_per_second: 5",
            "mine.yaml:2: unknown key 'sustain' in plan; only for mode sustain, capacity, faults",
        ),
        (
            "mode: capacity\npipelines: [postgres/jdbc]\nsustain:\n  records_per_second: 5",
            "mine.yaml:4: unknown key 'records_per_second' in sustain; only for mode sustain, faults",
        ),
        (
            "mode: sustain\npipelines:\n  - {pipeline: postgres/jdbc, rows_before: 5}",
            "mine.yaml:3: unknown key 'rows_before' in pipelines; only for mode drain",
        ),
        (
            "mode: faults\npipelines: [postgres/jdbc]\nfaults: [{what: kill, whom: worker}]",
            "mine.yaml:3: unknown key 'whom' in faults; it was renamed to 'target'",
        ),
        (
            "mode: sustain\npipelines: [postgres/jdbc]\nsustain:\n  records_per_second: 0",
            "mine.yaml:4: sustain.records_per_second must be more than 0",
        ),
        (
            "mode: sustain\npipelines: [postgres/jdbc]\nsustain:\n  records_per_second: 9\n  seconds: 9",
            "mine.yaml:5: sustain.seconds 9 gives 36 samples at probe_interval_ms 250; at least 40",
        ),
        (
            "mode: capacity\npipelines: [postgres/jdbc]\nuntil: {interval_percent: 5, trials: 9}",
            "mine.yaml:3: unknown key 'until' in plan; only for mode drain, sustain, rescale, faults",
        ),
        (
            "pipelines: [postgres/jdbc]\nuntil:\n  trials: 2\n  interval_percent: 5",
            "mine.yaml:3: until.trials 2 is less than trials 3",
        ),
        ("- postgres/jdbc", "mine.yaml:1: a plan must be a mapping of keys to values; found a list"),
        ("", "mine.yaml:1: a plan must be a mapping of keys to values; the file is empty"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_how_to_mend_it(
    folder: Path, connectors: Path, text: str, said: str
) -> None:
    refused = refusal(folder, connectors, text)
    assert said in refused
    assert "\n" not in refused


def test_a_pipeline_listed_twice_needs_a_label(folder: Path, connectors: Path) -> None:
    refused = refusal(
        folder, connectors, "pipelines:\n  - postgres/jdbc\n  - pipeline: postgres/jdbc\n    label: postgres/jdbc"
    )
    assert refused.startswith(
        "mine.yaml:4: 'postgres/jdbc' names two entries of pipelines; give one of them another label"
    )


def test_several_mistakes_are_told_in_the_order_of_the_file_five_at_most(folder: Path, connectors: Path) -> None:
    refused = refusal(folder, connectors, "pipelines: [postgres/jdbc]\n" + "".join(f"k{i}: 1\n" for i in range(7)))
    lines = refused.splitlines()
    assert [line.split(": ")[0] for line in lines[:5]] == [f"mine.yaml:{number}" for number in range(2, 7)]
    assert lines[5:] == ["(and 2 more)"]


def test_a_plan_that_cannot_be_read_says_why(folder: Path, connectors: Path) -> None:
    (folder / "quick.yaml").write_text("pipelines: [postgres/jdbc]")
    with pytest.raises(PlanError, match=r"quik\.yaml: there is no such plan; did you mean 'quick\.yaml'\?"):
        load_plan(folder / "quik.yaml", connectors)
    with pytest.raises(PlanError, match="is a folder"):
        load_plan(folder, connectors)
    with pytest.raises(PlanError, match="cannot be read"):
        load_plan(folder / "quick.yaml" / "x", connectors)
    (folder / "latin.yaml").write_bytes(b"name: a\nlabel: \xe9\n")
    with pytest.raises(PlanError, match=r"latin\.yaml:2: is not UTF-8"):
        load_plan(folder / "latin.yaml", connectors)


def test_a_folder_without_connectors_is_named(folder: Path, tmp_path: Path) -> None:
    assert f"{tmp_path}: no pipelines found" in refusal(folder, tmp_path, "pipelines: [postgres/jdbc]")


def test_a_file_name_that_is_no_plan_name_is_made_one(tmp_path: Path, connectors: Path) -> None:
    path = tmp_path / "my plan (2).yaml"
    path.write_text("pipelines: [postgres/jdbc]")
    assert load_plan(path, connectors).name == "my-plan-2"


def test_lines_are_found_for_what_the_file_has_and_for_what_is_around_the_rest(folder: Path, connectors: Path) -> None:
    plan = read(folder, connectors, "# a plan\npipelines:\n  - postgres/jdbc\n\nload:\n  keys: 5\n")
    assert plan.where("pipelines", 0).endswith("mine.yaml:3")
    assert plan.where("load", "keys").endswith("mine.yaml:6")
    assert plan.where("load", "partitions").endswith("mine.yaml:5")


@settings(max_examples=count(40, 8))
@example(multiples=[1], label="a", override="\x85", acks="all", seed=None).via("a line break to YAML 1.1 alone")
@given(
    multiples=st.lists(st.integers(1, 50), min_size=1, max_size=4, unique=True),
    label=st.text(min_size=1, max_size=60).filter(lambda text: text.isprintable()),
    override=st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20)),
    acks=st.sampled_from(["all", 1, 0]),
    seed=st.none() | st.integers(0, 2**63 - 1),
)
def test_what_show_prints_is_the_same_plan_again(
    folder: Path, connectors: Path, multiples: list[int], label: str, override: object, acks: object, seed: int | None
) -> None:
    plan = Plan.model_validate(
        {
            "name": "mine",
            "multiples": multiples,
            "pipelines": ["postgres/jdbc", {"pipeline": "postgres/jdbc", "label": label, "overrides": {"a": override}}],
            "load": {"acks": acks},
            "seed": seed,
        }
    )
    again = read(folder, connectors, plan.show())
    assert again.show() == plan.show()
    assert again.sha256 == plan.sha256


def test_the_digest_tells_what_is_measured_and_not_in_which_order(folder: Path, connectors: Path) -> None:
    plan = read(folder, connectors, "pipelines: [postgres/jdbc]")
    assert plan.seeded().seed is not None
    assert plan.seeded().sha256 == plan.sha256
    assert read(folder, connectors, "pipelines: [postgres/jdbc]\ntrials: 4").sha256 != plan.sha256
    assert read(folder, connectors, "# why\npipelines:\n- pipeline: postgres/jdbc").sha256 == plan.sha256


@settings(max_examples=count(40, 8))
@given(text=st.text(alphabet="ab:-[]{}&*!|>%'\"#,? \n1.", max_size=60))
def test_no_text_whatsoever_ends_in_anything_but_a_plan_or_a_plan_error(
    folder: Path, connectors: Path, text: str
) -> None:
    with pytest.raises(PlanError):
        read(folder, connectors, text)


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_plans_that_come_with_sinkbench_are_plans(path: Path) -> None:
    plan = load_plan(path, CHECKOUT / "connectors")
    assert expand(plan, 3)
    check_settings(plan, settable_of_sinks())
    check_forms(plan, CHECKOUT / "connectors", {"postgres": True})
    check_targets(plan, {"postgres": ".sql", "elasticsearch": ".json"})


def test_rates_make_cells_of_their_own(folder: Path, connectors: Path) -> None:
    text = "mode: sustain\npipelines: [postgres/jdbc]\nmultiples: [1, 2]\nsustain: {records_per_second: [100, 2.5]}"
    cells = expand(read(folder, connectors, text), 3)
    places = ["postgres/jdbc@3x1", "postgres/jdbc@3x2"]
    assert [cell.key for cell in cells] == [f"{place}@{rate}" for place in places for rate in ("100", "2.5")]
    assert [cell.place for cell in cells] == [place for place in places for _ in range(2)]


def test_the_nearest_name_is_the_one_spelled_most_alike_or_else_the_one_that_contains_it() -> None:
    known = ["postgres/jdbc", "postgres/jdbc-pgbouncer"]
    assert nearest("POSTGRES/JDCB", known) == "postgres/jdbc"
    assert nearest("jdbc", known) == "postgres/jdbc"
    assert nearest("mongo", known) is None
    assert nearest("", known) is None
    assert nearest("x", []) is None


def test_where_no_name_is_near_those_that_are_known_are_listed() -> None:
    assert did_you_mean("mongo", ["b", "a"]) == "; known: a, b"
    assert did_you_mean("mongo", []) == ""
    assert did_you_mean("mongo", [f"k{i:02}" for i in range(20)]).endswith("k11 and 8 more")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mode: rescale\npipelines: [postgres/jdbc]", "mine.yaml:1: mode rescale goes from one multiple to the next"),
        (
            "mode: rescale\nmultiples: [1, 2]\npipelines:\n- {pipeline: postgres/jdbc, multiples: [2]}",
            "mine.yaml:4: mode rescale goes from one multiple to the next, but postgres/jdbc has only one",
        ),
        (
            "pipelines:\n- {pipeline: elasticsearch/camel-bulk, probes: false}",
            "mine.yaml:2: probes: false needs a sink that stores the time of every insertion (postgres)",
        ),
        (
            "mode: capacity\npipelines:\n- {pipeline: postgres/jdbc, probes: false}",
            "mine.yaml:3: unknown key 'probes' in pipelines; only for mode drain",
        ),
    ],
)
def test_what_does_not_fit_the_mode_is_told_with_its_line(folder: Path, connectors: Path, text: str, said: str) -> None:
    assert said in refusal(folder, connectors, text)


def test_a_plan_of_ones_own_records_has_no_keys_of_noaas(folder: Path, connectors: Path) -> None:
    text = "pipelines: [postgres/jdbc]\nload: {keys: 7, record_bytes: 600, partitions: 6}"
    plan = read(folder, connectors, text).with_records("orders.ndjson", "customer.id")
    assert (plan.load.records, plan.load.key, plan.load.partitions) == ("orders.ndjson", "customer.id", 6)
    shown = plan.show()
    assert "record_bytes" not in shown
    assert read(folder, connectors, shown).load == plan.load
    assert read(folder, connectors, shown).sha256 == plan.sha256
    assert plan.with_records("noaa", None).load.key is None
    with pytest.raises(PlanError, match="--key: is for records of your own"):
        read(folder, connectors, text).with_records(None, "customer.id")


def test_a_plan_at_the_pace_of_its_records_takes_their_rate(folder: Path, connectors: Path) -> None:
    text = "mode: sustain\npipelines: [postgres/jdbc]\nload: {records: 'kafka://h:1/t', pace: recorded}"
    plan = read(folder, connectors, text)
    assert isinstance(plan, SustainPlan)
    assert plan.at_pace(12.5).sustain.records_per_second == (12.5,)
    given = read(folder, connectors, f"{text}\nsustain: {{records_per_second: 70}}")
    assert isinstance(given, SustainPlan)
    assert given.at_pace(12.5) == given
