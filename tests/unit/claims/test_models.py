"""Claims as files: all published findings are there, their cells are in their plans, and mistakes have their lines."""

from pathlib import Path

import pytest

from sinkbench.claims.models import Arithmetic, CellOf, Claim, Failure, Ratio, load_claim, load_claims
from sinkbench.claims.narrowing import narrowed
from sinkbench.cli.plans import read_plan
from sinkbench.cli.replicate import CLAIMS
from sinkbench.errors import ClaimError
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import kafka_loads, load_plan
from sinkbench.settings import CHECKOUT
from sinkbench.topology import load_topology

ALL = load_claims(CLAIMS)
GOOD = """\
number: 1
source: {document: d, section: s}
published: p
plan: quick
shape:
  - kind: ratio
    of: [{label: a}]
    to: {label: b}
    at_least: 10
"""


def test_every_published_finding_is_a_claim_of_an_article() -> None:
    assert [claim.number for claim in ALL] == list(range(1, 66))
    # 62 of articles, and vendors' rules; the quick races have one of each.
    assert sorted(claim.article for claim in ALL if claim.core) == ["aiven", "aws", "openshift", "part8"]
    assert {claim.article for claim in ALL[:62]} == {"part8", "aiven", "aws", "openshift"}
    assert {claim.article for claim in ALL[62:]} == {"rules"}
    assert [claim.name for claim in ALL if claim.name.split("-")[1] != f"{claim.number:02}"] == []


def named(claim: Claim) -> list[CellOf]:
    return [cell for shape in claim.shape or () if not isinstance(shape, Arithmetic) for cell in shape.cells]


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("claim", [claim for claim in ALL if claim.plan is not None], ids=lambda claim: claim.name)
def test_every_cell_of_a_claim_is_one_cell_of_its_plan(claim: Claim, cut: bool) -> None:
    whole = read_plan(claim.plan or "")
    topology = load_topology(claim.needs.topology or "small", CHECKOUT, CHECKOUT)
    workers = whole.workers or topology.connect.nodes
    plan = narrowed(whole, [each for each in ALL if each.plan == claim.plan], workers) if cut else whole
    cells, alone = expand(plan, workers), [load.label for load in kafka_loads(plan)]
    for wanted in named(claim):
        if wanted.label in alone:
            continue
        found = [cell for cell in cells if cell.label == wanted.label and wanted.tasks in (None, cell.tasks)]
        found = [cell for cell in found if wanted.of_capacity in (None, cell.of_capacity)]
        found = [cell for cell in found if wanted.readers in (None, cell.readers)]
        found = [cell for cell in found if wanted.fault in (None, cell.fault and cell.fault.name)]
        assert len(found) == 1, f"{wanted} is {[cell.key for cell in found]}"


@pytest.mark.parametrize("name", sorted({claim.plan for claim in ALL if claim.plan is not None}))
def test_a_plan_that_was_cut_can_be_read_again_as_its_run_stores_it(name: str, tmp_path: Path) -> None:
    plan, file = read_plan(name), tmp_path / "plan.yaml"
    cut = narrowed(plan, [each for each in ALL if each.plan == name], plan.workers or 3)
    file.write_text(cut.show())
    assert load_plan(file, CHECKOUT / "connectors", kept=True).show() == cut.show()


def test_claims_are_chosen_by_article_by_number_and_by_name() -> None:
    found = load_claims(CLAIMS, ["aws", "part8-16-shards", "part8-12", "part8-1"])
    assert {claim.article for claim in found} == {"aws", "part8"}
    assert len(found) == 16


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("published: p", "publishd: p", r":1: .*'published'.*\n.*:3: unknown key 'publishd'"),
        ("kind: ratio", "kind: rato", ":6: .*ratio"),
        ("at_least: 10", "at_leest: 10", ":9: .*unknown key 'at_leest'|:6: .*unknown key 'at_leest'"),
        ("at_least: 10", "per_task: true", ":6: .*needs at_least, at_most or equals"),
        ("at_least: 10", "at_least: 10\n    figure: record", ":10: there is no figure 'record'; did you mean"),
        ("at_least: 10", "at_least: ten", ":9: .*at_least must be a number"),
        ("plan: quick\n", "", ":4: a shape of cells needs the plan"),
        ("shape:", "untestable: why\nshape:", ":5: needs either a shape, or 'untestable'"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, before: str, after: str, words: str) -> None:
    file = tmp_path / "part8-01-x.yaml"
    file.write_text(GOOD)
    assert isinstance((load_claim(file).shape or ())[0], Ratio)
    file.write_text(GOOD.replace(before, after))
    with pytest.raises(ClaimError, match=words):
        load_claim(file)


def test_a_failure_has_a_known_code(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    shape = "shape: [{kind: failure, of: {label: a}, code: tasks_failed, says: [too many clients]}]\n"
    file.write_text(GOOD.partition("shape:")[0] + shape)
    assert isinstance((load_claim(file).shape or ())[0], Failure)
    file.write_text(file.read_text().replace("tasks_failed", "tasks_faild"))
    with pytest.raises(ClaimError, match=":5: "):
        load_claim(file)
