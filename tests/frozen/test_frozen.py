"""The code makes of stored runs what it made of them before: the same figures, in the same words."""

import csv
import difflib
import io
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.frozen import make

MOST_LINES = 100
FILES = sorted(f"{name}/{file.name}" for name in make.NAMES for file in (make.EXPECTED / name).iterdir())


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Unpacks a stored run."""
    folder = tmp_path_factory.mktemp("runs")
    return cache(lambda name: make.unpack(name, folder))


@pytest.fixture(scope="module")
def made(unpacked: Callable[[str], Path]) -> Callable[[str], dict[str, str]]:
    """What is made of a stored run."""
    return cache(lambda name: make.outputs(name, unpacked(name)))


@pytest.fixture(scope="module")
def compared(unpacked: Callable[[str], Path]) -> dict[str, str]:
    return make.comparisons({name: unpacked(name) for name in make.NAMES})


@pytest.mark.parametrize("name", make.NAMES)
def test_the_screen_is_100_columns_wide_at_most(name: str, made: Callable[[str], dict[str, str]]) -> None:
    assert max(map(len, made(name)["screen.txt"].splitlines())) <= 100


@pytest.mark.parametrize("file", FILES)
def test_a_run_gives_what_it_gave(
    file: str, made: Callable[[str], dict[str, str]], unpacked: Callable[[str], Path]
) -> None:
    name, output = file.split("/")
    found, expected = made(name)[output], (make.EXPECTED / file).read_text("utf-8")
    if output.endswith(".json"):
        summary = json.loads(found)
        environment = json.loads((unpacked(name) / "summary.json").read_text("utf-8"))["environment"]
        _same_json(summary.pop("environment"), environment)
        # What is newer than the stored runs.
        whole = make.uncompacted(name, expected)
        partitions = 12 if name == "drain-mixed" else 24
        cells = [{"variables": {}, "partitions": partitions, **cell} for cell in whole["cells"]]
        _same_json(summary, {"profiles": [], **whole, "cells": cells})
    elif output.endswith(".csv"):
        _same(_by_column(found), _by_column(expected))
    else:
        _same(found, expected)


@pytest.mark.parametrize("file", sorted(file.name for file in (make.EXPECTED / "compared").iterdir()))
def test_two_runs_compare_as_they_did(file: str, compared: dict[str, str]) -> None:
    _same(compared[file], (make.EXPECTED / "compared" / file).read_text("utf-8"))


def test_the_runs_are_listed_as_they_were(unpacked: Callable[[str], Path]) -> None:
    _same(make.listing(map(unpacked, make.NAMES)), (make.EXPECTED / "runs.txt").read_text("utf-8"))


def test_files_have_the_fields_that_they_had() -> None:
    _same(make.fields(), (make.EXPECTED / "fields.txt").read_text("utf-8"))


@pytest.mark.parametrize("name", make.NAMES)
def test_every_stored_field_of_a_trial_is_read(name: str, unpacked: Callable[[str], Path]) -> None:
    """A field that is not known is ignored, and a figure would be lost without a word."""
    run = unpacked(name)
    kept = [json.loads(line) for line in (run / "trials.jsonl").read_text("utf-8").splitlines()]
    # `invalid` repeats the reasons.
    again = [trial.model_dump(mode="json", exclude={"invalid"}) for trial in make.read(run)[1].trials]
    _same_json(*(make.bare(each, (None, "", [], {})) for each in (again, kept)))


@pytest.mark.parametrize("name", make.NAMES)
def test_a_plan_is_kept_as_it_was(name: str, unpacked: Callable[[str], Path]) -> None:
    stored = (make.RUNS / name / "plan.yaml").read_text("utf-8")
    _same(_without_added(make.read(unpacked(name))[0].show()), stored)


def _without_added(plan: str) -> str:
    """The text of a plan without the keys, with their defaults, that are newer than the stored runs."""
    added = (
        r"  warm_up_budget_seconds: 60.0|(?:  (?:delimiter|header|plugin|arm|partitions|reads_from)|workers): null"
        r"|  may_fail: false|profile: false|kafka: \[\]"
    )
    return re.sub(
        rf"(?m)^(?:{added}|  variables: \{{\}}|arms: \{{\}}|  of_capacity: \[\]|  readers:\n  - 0)\n", "", plan
    )


def test_nothing_is_made_that_is_not_expected(made: Callable[[str], dict[str, str]], compared: dict[str, str]) -> None:
    found = {f"{name}/{output}" for name in make.NAMES for output in made(name)} | {
        f"compared/{each}" for each in compared
    }
    assert found == {path.relative_to(make.EXPECTED).as_posix() for path in make.EXPECTED.glob("*/*")}


def _same(found: str, expected: str) -> None:
    """Fails with the lines that differ."""
    lines, wanted = _text_lines(make.ruled(found)), _text_lines(expected)
    if lines != wanted:
        different = list(difflib.unified_diff(wanted, lines, "expected", "found", n=2, lineterm=""))
        more = [f"and {len(different) - MOST_LINES} more lines"] if len(different) > MOST_LINES else []
        pytest.fail("\n".join(["is not as it was:", *different[:MOST_LINES], *more]), pytrace=False)


def _by_column(text: str) -> str:
    """A table in CSV, a line a value."""
    headers, *rows = csv.reader(io.StringIO(text))
    return "\n".join(
        f"row {number} {line}"
        for number, row in enumerate(rows)
        for line in map(" = ".join, zip(headers, row, strict=True))
    )


def _same_json(found: Any, expected: Any) -> None:
    found, expected = (
        json.dumps(make.bare(each), indent=1, sort_keys=True, ensure_ascii=False) for each in (found, expected)
    )
    _same(found, expected)


def _text_lines(text: str) -> list[str]:
    # Another processor may come to another last digit.
    return re.sub(r"-?\d+\.\d{6,}(e-?\d+)?", lambda number: repr(float(f"{float(number[0]):.10g}")), text).split("\n")
