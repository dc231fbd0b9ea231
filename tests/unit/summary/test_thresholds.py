"""Thresholds: which are refused, what comes of each, and how a run's are shown and counted."""

import importlib
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from sinkbench.analysis.bound import Bound
from sinkbench.analysis.latency import latency_of
from sinkbench.cli.main import app
from sinkbench.plan.plan import Plan
from sinkbench.results import Audit, Connections, RunSummary
from sinkbench.summary.cells import summarize
from sinkbench.summary.thresholds import exit_code, outcomes, threshold_lines
from sinkbench.tables.cells import sections
from sinkbench.tables.export import junit
from tests.support.reasons import because
from tests.support.samplerun import keep_run
from tests.support.trials import JDBC, OTHER, run_summary, trial


def run(asked: dict[str, str], complete: bool = True, **fields: Any) -> RunSummary:
    """A run of one cell at 10,000 records/s, of which this is asked."""
    usual = {"connections": Connections(clients_peak=144, server_peak=18), "latency_ms": latency_of([5_000.0] * 999)}
    taken = [trial(10_000, JDBC, block=block, **{**usual, **fields}) for block in (1, 2, 3)]
    kept = run_summary(*summarize([JDBC], taken))
    return kept.model_copy(update={"complete": complete, "thresholds": {JDBC.label: asked}})


@pytest.mark.parametrize(
    ("text", "holds", "fails"),
    [("< 5", 4, 5), ("<=5", 5, 5.1), ("> 20_000", 20_001, 20_000), (">=0.5", 0.5, 0.4), ("==0", 0, 1)],
)
def test_a_bound_is_an_operator_and_a_number(text: str, holds: float, fails: float) -> None:
    assert (Bound.of(text).holds(holds), Bound.of(text).holds(fails)) == (True, False)


@pytest.mark.usefixtures("no_settings")
def test_the_tests_of_capacity_say_which_threshold_is_not_met() -> None:
    # It reads the settings when it is imported.
    test_capacity = importlib.import_module("tests.capacity.test_capacity")
    found = outcomes(run({"p99_ms": "< 6", "connections": "<= 10"}))
    test_capacity.test_a_threshold_is_met(JDBC.label, "p99_ms", "< 6", found)
    with pytest.raises(AssertionError, match="connections 18 is not <= 10"):
        test_capacity.test_a_threshold_is_met(JDBC.label, "connections", "<= 10", found)


LOST = Audit(produced=10, stored=8, lost=2, duplicates=0)
COLD: dict[str, Any] = {"warm": False, "compiling_share": 0.3}
BROKEN: dict[str, Any] = {"reasons": [because("a task FAILED")]}


@pytest.mark.parametrize(
    ("asked", "fields", "passed", "words"),
    [
        ({"records_per_second": "> 9000"}, {}, True, "✓ postgres/jdbc@3x1: records_per_second 10,000 (> 9000)"),
        ({"records_per_second": "> 20000"}, {}, False, "records_per_second 10,000 is not > 20000"),
        ({"p99_ms": "< 6"}, {}, True, "p99_ms 5 (< 6)"),
        ({"connections": "<= 10"}, {}, False, "connections 18 is not <= 10"),
        ({"lost": "== 0"}, {}, True, "lost 0 (== 0)"),
        ({"lost": "== 0"}, {"audit": LOST}, False, "✗ postgres/jdbc@3x1: lost 6 is not == 0"),
        # What was lost is lost, whatever else is known.
        ({"lost": "== 0"}, {"audit": LOST, "complete": False}, False, "lost 6 is not"),
        ({"lost": "== 0"}, {"audit": LOST, **COLD, **BROKEN}, False, "lost 6 is not"),
        ({"lost": "> 9"}, {"audit": LOST, "complete": False}, None, "the run is not finished"),
        ({"lost": "== 0"}, COLD, True, "lost 0"),
        ({"lost": "== 0"}, {"audit": None}, None, "lost (asked == 0): not audited in 3 of 3"),
        ({"records_per_second": "> 1"}, COLD, None, "(asked > 1): not final"),
        ({"records_per_second": "> 20000"}, COLD, None, "(asked > 20000): not final"),
        ({"p99_ms": "< 1"}, BROKEN, None, "(asked < 1): "),
        ({"p99_ms": "< 1"}, {"latency_ms": None}, None, "p99_ms (asked < 1): not measured"),
        ({"p99_ms": "< 6000"}, {"complete": False}, None, "the run is not finished"),
        ({"memory_mb": "< 1"}, {}, None, "? postgres/jdbc@3x1: memory_mb (asked < 1): not measured"),
    ],
)
def test_a_threshold_passes_fails_or_is_not_decided(
    asked: dict[str, str], fields: dict[str, Any], passed: bool | None, words: str
) -> None:
    (found,) = outcomes(run(asked, **fields))
    assert (found.passed, words in found.line) == (passed, True), found.line
    assert exit_code([found]) == {True: 0, False: 1, None: 3}[passed]


def test_a_failure_decides_the_exit_code_and_a_pipeline_without_trials_is_not_decided() -> None:
    kept = run({"lost": "== 0", "records_per_second": "> 20000"})
    kept = kept.model_copy(update={"thresholds": {**(kept.thresholds or {}), OTHER.label: {"lost": "== 0"}}})
    assert [each.passed for each in outcomes(kept)] == [True, False, None]
    assert exit_code(outcomes(kept)) == 1
    assert threshold_lines(kept)[0] == "Thresholds: 1 passed, 1 failed, 1 inconclusive"
    (section,) = [each for each in sections(kept) if each.key == "thresholds"]
    assert section.parts == threshold_lines(kept)
    suite = ET.fromstring(junit(kept))  # noqa: S314 - written here
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "1", "1")
    cases = [(case.get("classname"), case.get("name"), [each.tag for each in case]) for case in suite]
    assert cases == [
        (JDBC.key, "checks", []),
        (JDBC.key, "lost == 0", []),
        (JDBC.key, "records_per_second > 20000", ["failure"]),
        (OTHER.label, "lost == 0", ["skipped"]),
    ]


def test_a_run_without_thresholds_shows_none_and_its_losses_are_failures() -> None:
    kept = run({}, audit=LOST).model_copy(update={"thresholds": None})
    assert (threshold_lines(kept), exit_code(outcomes(kept))) == ([], 0)
    assert 'message="' in junit(kept)


@pytest.mark.parametrize(
    ("asked", "code"), [({"lost": ">= 0"}, 0), ({"lost": "> 9000"}, 1), ({"efficiency": "> 1"}, 3)]
)
def test_the_command_ends_as_the_thresholds_say(tmp_path: Path, asked: dict[str, str], code: int) -> None:
    folder = keep_run(tmp_path, blocks=2, seconds=2.0)
    kept = json.loads((folder / "summary.json").read_text())
    kept["thresholds"] = {kept["cells"][0]["label"]: asked}
    (folder / "summary.json").write_text(json.dumps(kept))
    done = CliRunner().invoke(app, ["resume", str(folder), "--junit", str(tmp_path / "junit.xml")])
    assert done.exit_code == code, done.output
    assert "\nThresholds: " in done.output
    assert ET.parse(tmp_path / "junit.xml").getroot().tag == "testsuite"  # noqa: S314 - written here


PIPELINES = {"pipelines": ["postgres/jdbc", "elasticsearch/camel-bulk"]}
KNOWN = {"pipelines": ["postgres/jdbc", "elasticsearch/camel-bulk"], "stamping": None, "folders": ()}


def plan(thresholds: Any) -> Plan:
    return Plan.model_validate({"name": "x", **PIPELINES, "thresholds": thresholds}, context=KNOWN)


def test_the_thresholds_of_a_pipeline_count_instead_of_those_of_all_and_change_no_digest() -> None:
    made = plan({"lost": 0, "p99_ms": "<1000", "postgres/jdbc": {"p99_ms": "<= 20.5"}})
    assert made.bounds == {
        "postgres/jdbc": {"lost": "== 0", "p99_ms": "<= 20.5"},
        "elasticsearch/camel-bulk": {"lost": "== 0", "p99_ms": "< 1000"},
    }
    assert made.sha256 == plan(None).sha256
    assert "thresholds" not in plan(None).whole()
    assert plan(made.whole()["thresholds"]).bounds == made.bounds


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"p99": "<1000"}, "there is no figure 'p99'; did you mean 'p99_ms'?"),
        ({"postgres/jdbs": {"lost": 0}}, "there is no pipeline 'postgres/jdbs'; did you mean 'postgres/jdbc'?"),
        ({"postgres/jdbc": {"lots": 0}}, "there is no figure 'lots'; did you mean 'lost'?"),
        ({"lost": "few"}, 'must be a number, or a text such as "<1000"'),
        ({"lost": True}, "found true"),
        ({"lost": None}, "found nothing"),
        ({"lost": [1]}, "found a list"),
        ({"efficiency": ">0.5"}, "set limits: true"),
    ],
)
def test_what_cannot_be_asked_is_refused(asked: Any, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        plan(asked)
