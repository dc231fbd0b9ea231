"""What a race takes for left behind on its own stack: names as trials give, and no other that begins alike."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sinkbench.race.leftovers import is_leftover

OWN: Any = SimpleNamespace(endpoints=SimpleNamespace(shared=False))


@pytest.mark.parametrize("name", ["001", "1000", "pilot", "pilot_3", "limit", "limit_copy", "limit_multi-row insert"])
def test_what_a_trial_has_made_is_left_behind(name: str) -> None:
    assert is_leftover(OWN)(f"tides_ab12cd_{name}")


@pytest.mark.parametrize(
    "name",
    ["tides", "tides_", "tides_backup", "tides_of_mine_001", "tides_2026_001", "tides_ab12cd", "tides_ab12cd_01",
     "tides_ab12cd_001_copy", "my_tides_ab12cd_001", "tides_AB12CD_001"],
)  # fmt: skip
def test_what_only_begins_alike_is_somebodys_own(name: str) -> None:
    assert not is_leftover(OWN)(name)
