"""A comparison as a comment; what it is like is in tests/frozen/expected/compared."""

import re
from dataclasses import replace
from pathlib import Path

from sinkbench.runs.compare import compare
from sinkbench.runs.reader import load_run
from sinkbench.tables.github import github
from tests.frozen.make import stored_run


def test_the_visible_part_has_counts_and_causes_and_no_name_of_a_run(tmp_path: Path) -> None:
    a, b = (load_run(stored_run(name, tmp_path)) for name in ("pair-a", "pair-b"))
    later = github(compare(a, replace(b, summary=b.summary.model_copy(update={"run": "20270101T000000Z-pair"}))))
    assert later != github(compare(a, b))
    assert later.partition("<details>")[0] == github(compare(a, b)).partition("<details>")[0]
    first, other = b.summary.cells
    cells = [first.model_copy(update={"passed": False, "verdict": "LOST 3 | of 10"}), other]
    asked = {first.label: {"connections": "< 1", "duplicates": "< 1"}, other.label: {"lost": "< 1"}}
    failed = replace(b, summary=b.summary.model_copy(update={"cells": cells, "thresholds": asked}))
    comment = github(compare(a, failed)).partition("<details>")[0]
    assert re.search(r"^\| elastic.* \| \*\*LOST 3 \\\| of 10\*\* .* \| \*\*1 of 2\*\* \|$", comment, re.MULTILINE)
    assert re.search(r"^\| postgres.* \| 1 of 1 \|$", comment, re.MULTILINE)
