"""Measurements are taken again by what the machine did, never by what came of them."""

from pathlib import Path

import pytest

from tests.support import undisturbed as support
from tests.support.undisturbed import undisturbed


@pytest.mark.parametrize(("still_seconds", "taken"), [(60.0, ["first"]), (-1.0, ["first", "second"])])
def test_a_measurement_is_taken_again_only_if_the_machine_stood_still(
    still_seconds: float, taken: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(support, "STILL_SECONDS", still_seconds)
    seen: list[str] = []
    assert undisturbed(lambda folder: seen.append(folder.name) or len(seen), tmp_path) == len(taken)
    assert seen == taken


def test_a_measurement_that_fails_is_not_taken_again(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        assert not folder.exists()

    with pytest.raises(AssertionError):
        undisturbed(fail, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["first"]
