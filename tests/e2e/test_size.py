"""Sizes from runs that `size` takes itself."""

import json
from pathlib import Path

import pytest

from sinkbench.stack.local import LocalStack
from tests.support.commands import Run

PLAN = """
pipelines: [postgres/reference-copy]
drain: {compiling_percent: 100, window_seconds: 2, pilot_seconds: 1, warm_up_seconds: 2, warm_up_budget_seconds: 5}
"""


@pytest.mark.rare
def test_what_is_needed_is_raced_with_records_of_the_asked_size_and_a_load_that_decides(
    stack: LocalStack, sinkbench: Run, tmp_path: Path
) -> None:
    (tmp_path / "drains.yaml").write_text(PLAN)
    done = sinkbench("size", "--rate", "2000", "--bytes", "700", "--p99", "30s", "--race", "drains.yaml", "--json")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    found = json.loads(done.stdout)
    drains, loads = (json.loads((tmp_path / "results" / run / "summary.json").read_text()) for run in found["runs"])
    # Fewer tasks are needed than were raced, which are then as busy by a higher rate.
    assert [cell["offered_records_per_second"] >= 2_000 for cell in loads["cells"]] == [True]
    (copy,) = found["pipelines"]
    assert (copy["pipeline"], copy["record_bytes"]) == (drains["cells"][0]["label"], 700)
    assert [text for text in copy["not_decided"] if "no constant load" in text] == []
    if done.returncode == 0:
        assert copy["cores_of_loads"]
        assert copy["figures"]["p99_ms"]["basis"] == "measured"
