"""docs/sinks.md shows the very package that a test races."""

from __future__ import annotations

from pathlib import Path

import pytest

import sinkbench

CHECKOUT = Path(sinkbench.__file__).parents[1]


@pytest.mark.parametrize(("language", "file"), [("python", "sinkbench_mariadb.py"), ("json", "jdbc.json")])
def test_the_page_holds_the_example_as_it_is(language: str, file: str) -> None:
    text = (CHECKOUT / "tests" / "e2e" / "mariadb_sink" / file).read_text(encoding="utf-8")
    assert f"```{language}\n{text}```\n" in (CHECKOUT / "docs" / "sinks.md").read_text(encoding="utf-8")
