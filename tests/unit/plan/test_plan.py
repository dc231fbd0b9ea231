"""The plan file and a file of prices: what they may hold, and what a user is told about a mistake in them."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sinkbench.errors import PlanError
from sinkbench.plan.plan import Plan, load_plan
from sinkbench.plan.sections import Prices, load_prices
from sinkbench.suggest import did_you_mean, nearest
from tests.support.counts import count
from tests.support.trials import connectors_in, plan_in

JDBC = "pipelines: [postgres/jdbc]\n"
SUSTAIN, CAPACITY = f"mode: sustain\n{JDBC}", f"mode: capacity\n{JDBC}"
# Each line holds the one before ten times.
LAUGHS = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 7))


@pytest.fixture(scope="session")
def connectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = ("elasticsearch/camel-index", "elasticsearch/camel-bulk", "postgres/jdbc", "postgres/jdbc-pgbouncer")
    return connectors_in(tmp_path_factory.mktemp("checkout"), *names)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plans")


def refusal(folder: Path, connectors: Path, text: str) -> str:
    """What is said about a plan, without the folder in front of each line."""
    with pytest.raises(PlanError) as refused:
        plan_in(folder, text, connectors)
    return str(refused.value).replace(f"{folder}/", "")


def test_an_entry_may_change_multiples_connector_keys_and_label(folder: Path, connectors: Path) -> None:
    overrides = "{batch.size: 2000, flag: true, ratio: 0.5, text: a b}"
    entry = f"{{pipeline: postgres/jdbc, multiples: [2, 4], overrides: {overrides}, label: jdbc-2000}}"
    plan = plan_in(folder, f"multiples: [1]\npipelines:\n- postgres/jdbc\n- {entry}\n", connectors)
    first, second = plan.pipelines
    assert (plan.multiples_of(first), plan.multiples_of(second)) == ((1,), (2, 4))
    assert second.overrides == {"batch.size": "2000", "flag": "true", "ratio": "0.5", "text": "a b"}
    assert second.shown_name == "jdbc-2000"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (JDBC + "multipels: [1]", "2: unknown key 'multipels' in plan; did you mean 'mul"),
        (JDBC + "load:\n  records: a.ndjson\n  record_bytes: 512", "4: 'record_bytes' is for the records of noaa"),
        (
            JDBC + "load:\n  records: a.json\n  changes: {inserts: 1, updates: 0}",
            "4: 'changes' is for the records of noaa",
        ),
        (JDBC + "load:\n  key: customer.id", "3: 'key' is for records of your own; name them: records"),
        (JDBC + "load:\n  records: kafka://h:1/t\n  pace: recorded", "4: unknown key 'pace' in load"),
        (JDBC + "load:\n  changes: {inserts: 1, updates: 0, delete: 0}", "3: unknown key 'delete' in load.changes"),
        (JDBC + "load:\n  changes: {inserts: 0.5, updates: 0.4}", "3: load.changes: inserts 0.5, updates 0.4 and"),
        (CAPACITY + "load: {changes: {inserts: 1}}", "3: unknown key 'changes' in load; only for mode drain"),
        ("pipelines:\n  - pipeline: postgres/jdbc\n    lable: x", "3: unknown key 'lable' in pipelines; did you"),
        ("pipelines: [postgres/jdcb]", "1: unknown pipeline 'postgres/jdcb'; did you mean 'postgres/jdbc'?"),
        ("pipelines:\n\n  - jdbc", "3: unknown pipeline 'jdbc'; did you mean 'postgres/jdbc'?"),
        ("pipelines: [../../etc/passwd]", "1: unknown pipeline '../../etc/passwd'"),
        ("pipelines: []", "1: pipelines must not be empty"),
        ("trials: 1", "1: plan has no 'pipelines'"),
        (JDBC + "trials: three", "2: trials must be a whole number, found 'three'"),
        (JDBC + "trials: -1", "2: trials must be more than 0, found -1"),
        (JDBC + "multiples:\n  - 1\n  - 0", "4: multiples must be more than 0, found 0"),
        (JDBC + "multiples: [2, 2]", "2: multiples lists 2 2 times"),
        (JDBC + "load:", "2: load must be a mapping, found nothing"),
        (JDBC + "load:\n  keys: -5", "3: load.keys must be more than 0, found -5"),
        (JDBC + "load: {compression: gzp}", "found 'gzp'; did you mean 'gzip'?"),
        (JDBC + "prices: {currency: CHF, core_hour: -1}", "2: prices.core_hour must be more than 0"),
        (JDBC + "drain: {window_seconds: .nan}", "drain.window_seconds must be a finite number"),
        (JDBC + "name: ../x", "2: name must match"),
        ("pipelines:\n  - {pipeline: postgres/jdbc, overrides: {a: null}}", "overrides.a must be text, a number, true"),
        ("pipelines:\n  - pipeline: postgres/jdbc\n    overrides:\n      tasks.max: 3", "4: 'tasks.max' is set by"),
        (JDBC + "trials: 1\ntrials: 2", "3: not valid YAML: found duplicate key"),
        ("pipelines: [postgres/jdbc\ntrials: 1", "2: not valid YAML: "),
        ("trials: \x01", " not valid YAML: "),
        ("[" * 5_000, " is nested too deeply"),
        ("&a {pipelines: *a}", "or contains itself by an alias"),
        ("&a {? *a : 1}", "mine.yaml"),
        (LAUGHS, " has more than 100,000 values"),
        (SUSTAIN, "1: mode sustain offers postgres/jdbc a rate, but none"),
        ("mode: soak\npipelines: [postgres/jdbc]", "1: mode must be"),
        (JDBC + "sustain:\n  records_per_second: 5", "2: unknown key 'sustain' in plan; only for mode sustain"),
        (CAPACITY + "sustain:\n  records_per_second: 5", "4: unknown key 'records_per_second' in sustain; only for"),
        (f"mode: faults\n{JDBC}faults: [{{what: kill, targt: worker}}]", "3: unknown key 'targt' in faults; did you"),
        (
            "mode: sustain\npipelines: [{pipeline: postgres/jdbc, rows_before: 5}]",
            "2: unknown key 'rows_before' in pipelines; only for mode drain",
        ),
        (SUSTAIN + "sustain:\n  records_per_second: 0", "4: sustain.records_per_second must be more than 0"),
        (CAPACITY + "until: {interval_percent: 5, trials: 9}", "3: unknown key 'until' in plan; only for mode drain"),
        ("pipelines: [postgres/jdbc,\n postgres/jdbc]", "2: 'postgres/jdbc' names two entries of pipelines; give one"),
        (f"mode: rescale\n{JDBC}", "1: mode rescale goes from one multiple to the next"),
        (
            "mode: rescale\nmultiples: [1, 2]\npipelines:\n- {pipeline: postgres/jdbc, multiples: [2]}",
            "4: mode rescale goes from one multiple to the next, but postgres/jdbc has only one",
        ),
        ("- postgres/jdbc", "1: a plan must be a mapping of keys to values; found a list"),
        ("", "1: a plan must be a mapping of keys to values; the file is empty"),
    ],
)
def test_a_mistake_is_shown_with_its_line_and_the_fix(folder: Path, connectors: Path, text: str, said: str) -> None:
    refused = refusal(folder, connectors, text)
    assert refused.startswith("mine.yaml")
    assert said in refused
    assert "\n" not in refused


def test_several_mistakes_are_told_in_the_order_of_the_file_five_at_most(folder: Path, connectors: Path) -> None:
    refused = refusal(folder, connectors, "pipelines: [postgres/jdbc]\n" + "".join(f"k{i}: 1\n" for i in range(7)))
    lines = refused.splitlines()
    assert [line.split(": ")[0] for line in lines[:5]] == [f"mine.yaml:{number}" for number in range(2, 7)]
    assert lines[5:] == ["(and 2 more)"]


def test_a_plan_that_cannot_be_read_says_why(folder: Path, connectors: Path, tmp_path: Path) -> None:
    assert f"{tmp_path}: no pipelines found" in refusal(folder, tmp_path, "pipelines: [postgres/jdbc]")
    (folder / "quick.yaml").write_text("pipelines: [postgres/jdbc]")
    (folder / "latin.yaml").write_bytes(b"name: a\nlabel: \xe9\n")
    for name, said in {
        "quik.yaml": r"quik\.yaml: there is no such plan; did you mean 'quick\.yaml'\?",
        "": "is a folder",
        "quick.yaml/x": "cannot be read",
        "latin.yaml": r"latin\.yaml:2: is not UTF-8",
    }.items():
        with pytest.raises(PlanError, match=said):
            load_plan(folder / name, connectors)


@settings(max_examples=count(40, 8))
@example(multiples=[1], label="a", override="\x85", acks="all", seed=None).via("a line break to YAML 1.1 alone")
@given(
    multiples=st.lists(st.integers(1, 50), min_size=1, max_size=4, unique=True),
    label=st.text(min_size=1, max_size=60).filter(lambda text: text.isprintable() and "/" not in text),
    override=st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20)),
    acks=st.sampled_from(["all", 1, 0]),
    seed=st.none() | st.integers(0, 2**63 - 1),
)
def test_what_show_prints_is_the_same_plan_again(
    folder: Path, connectors: Path, multiples: list[int], label: str, override: object, acks: object, seed: int | None
) -> None:
    entries = ["postgres/jdbc", {"pipeline": "postgres/jdbc", "label": label, "overrides": {"a": override}}]
    keys = {"multiples": multiples, "pipelines": entries, "load": {"acks": acks}, "seed": seed}
    plan = Plan.model_validate({"name": "mine", **keys})
    again = plan_in(folder, plan.show(), connectors)
    assert again.show() == plan.show()
    assert again.sha256 == plan.sha256


def test_the_digest_tells_what_is_measured_and_not_in_which_order(folder: Path, connectors: Path) -> None:
    plan = plan_in(folder, "pipelines: [postgres/jdbc]", connectors)
    assert plan.seeded().seed is not None
    assert plan.seeded().sha256 == plan.sha256
    assert plan_in(folder, "pipelines: [postgres/jdbc]\ntrials: 4", connectors).sha256 != plan.sha256
    assert plan_in(folder, "# why\npipelines:\n- pipeline: postgres/jdbc", connectors).sha256 == plan.sha256
    priced = plan_in(folder, "pipelines: [postgres/jdbc]\nprices: {currency: EUR, core_hour: 1}", connectors)
    assert ("currency: EUR" in priced.show(), priced.sha256) == (True, plan.sha256)


@settings(max_examples=count(40, 8))
@given(text=st.text(alphabet="ab:-[]{}&*!|>%'\"#,? \n1.", max_size=60))
def test_no_text_whatsoever_ends_in_anything_but_a_plan_or_a_plan_error(
    folder: Path, connectors: Path, text: str
) -> None:
    with pytest.raises(PlanError):
        plan_in(folder, text, connectors)


def test_the_nearest_name_is_the_one_spelled_most_alike_or_else_the_one_that_contains_it() -> None:
    known = ["postgres/jdbc", "postgres/jdbc-pgbouncer"]
    assert (nearest("POSTGRES/JDCB", known), nearest("jdbc", known)) == ("postgres/jdbc", "postgres/jdbc")
    assert [nearest("mongo", known), nearest("", known), nearest("x", [])] == [None] * 3
    assert did_you_mean("mongo", ["b", "a"]) == "; known: a, b"
    assert did_you_mean("mongo", [f"k{i:02}" for i in range(20)]).endswith("k11 and 8 more")


def test_a_plan_of_ones_own_records_has_no_keys_of_noaas(folder: Path, connectors: Path) -> None:
    text = "pipelines: [postgres/jdbc]\nload: {keys: 7, record_bytes: 600, partitions: 6}"
    plan = plan_in(folder, text, connectors).with_records("orders.ndjson", "customer.id")
    assert (plan.load.records, plan.load.key, plan.load.partitions) == ("orders.ndjson", "customer.id", 6)
    shown = plan.show()
    assert "record_bytes" not in shown
    assert plan_in(folder, shown, connectors).load == plan.load
    assert plan_in(folder, shown, connectors).sha256 == plan.sha256
    assert plan.with_records("noaa", None).load.key is None
    said = plan.with_records("t.csv", delimiter=";", header=False)
    assert (said.load.delimiter, said.load.header) == (";", False)
    assert plan_in(folder, said.show(), connectors).load == said.load
    assert said.with_records("other.ndjson").load.delimiter is None
    for option in ({"header": True}, {"key": "customer.id"}):
        with pytest.raises(PlanError, match=f"--{next(iter(option))}: is for records of your own"):
            plan_in(folder, text, connectors).with_records(None, **option)


def prices_in(folder: Path, text: str) -> Prices:
    (folder / "prices.yaml").write_text(text)
    return load_prices(folder / "prices.yaml")


def test_what_has_no_price_is_none_and_a_record_is_kept_for_a_month(tmp_path: Path) -> None:
    found = prices_in(tmp_path, "currency: EUR\ncore_hour: 0.04\n")
    assert (found.currency, found.core_hour, found.memory_gb_hour, found.disk_gb_month) == ("EUR", 0.04, None, None)
    assert found.kept_months == 1
    assert found.as_kept().model_dump() == found.model_dump()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("core_hour: 1\n", "prices.yaml:1: file of prices has no 'currency', which it needs"),
        ("currency: EUR\nmemory_gb_hour: 0\n", "prices.yaml:2: memory_gb_hour must be more than 0"),
        ('currency: "  "\ncore_hour: 1\n', "prices.yaml:1: currency "),
        ("currency: one euro and forty cents\ncore_hour: 1\n", "prices.yaml:1: currency "),
        ("", "prices.yaml:1: a file of prices must be a mapping"),
    ],
)
def test_mistakes_in_prices_are_told_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(PlanError, match=f"/{said}"):
        prices_in(tmp_path, text)
