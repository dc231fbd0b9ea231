"""One race at a time: who is refused, and what it is told."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sinkbench.errors import ResultsError, StackError
from sinkbench.race.lock import CHECKOUT_LOCK, held_folder, only_race, race_on


@pytest.mark.parametrize(
    ("lock", "checkout", "container", "said"),
    [
        (
            "home",
            "other",
            None,
            rf"on this stack \(pid {os.getpid()}, plan quick, run r1, since .* UTC\);",
        ),
        ("external", "one", None, rf"in this checkout \(pid {os.getpid()}, plan quick, run r1, since"),
        ("external", "one", "controller", r"in this checkout \(container controller, plan quick, run r1, since"),
    ],
)
def test_a_second_race_on_a_stack_or_in_a_checkout_learns_which_race_holds_it(
    lock: str, checkout: str, container: str | None, said: str, tmp_path: Path
) -> None:
    with only_race(tmp_path / "home" / "race.lock", tmp_path / "one", "quick", container) as tell:
        tell("r1")
        with (
            pytest.raises(StackError, match=f"another race is running {said}"),
            only_race(tmp_path / lock / "race.lock", tmp_path / checkout, "mine"),
        ):
            pass


def test_a_stack_that_has_its_lock_where_the_checkout_has_it_takes_it_once(tmp_path: Path) -> None:
    with only_race(tmp_path / CHECKOUT_LOCK, tmp_path, "quick"):
        assert '"plan": "quick"' in (tmp_path / CHECKOUT_LOCK).read_text()
    assert (tmp_path / CHECKOUT_LOCK).read_text() == ""


def test_the_lock_of_a_race_that_was_killed_is_free(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from sinkbench.race.lock import only_race\n"
        "with only_race(Path(sys.argv[1]) / 'race.lock', Path(sys.argv[1]), 'quick'): os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert done.returncode == -9
    assert '"plan": "quick"' in (tmp_path / "race.lock").read_text()
    with only_race(tmp_path / "race.lock", tmp_path, "mine"):
        assert '"plan": "mine"' in (tmp_path / "race.lock").read_text()


@pytest.mark.parametrize(
    ("content", "who"),
    [("123", "pid unknown"), ('{"pid": 7}', "pid 7"), ("[" * 10_000, "pid unknown"), ("\xff\0", "pid unknown")],
)
def test_whatever_is_in_the_file_the_second_race_is_refused(tmp_path: Path, content: str, who: str) -> None:
    with only_race(tmp_path / "race.lock", tmp_path, "quick"):
        (tmp_path / CHECKOUT_LOCK).write_bytes(content.encode("latin-1"))
        with (
            pytest.raises(StackError, match=rf"in this checkout \({who}\); wait for it"),
            only_race(tmp_path / "race.lock", tmp_path, "mine"),
        ):
            pass


def test_a_checkout_that_cannot_be_written_does_not_keep_a_race_from_its_stack(tmp_path: Path) -> None:
    with only_race(tmp_path / "race.lock", Path("/proc/self"), "quick"):
        assert '"plan": "quick"' in (tmp_path / "race.lock").read_text()


def test_the_folder_of_a_run_is_held_while_trials_are_taken(tmp_path: Path) -> None:
    with held_folder(tmp_path), pytest.raises(ResultsError, match="its race still goes on"), held_folder(tmp_path):
        pass
    with held_folder(tmp_path):
        pass


def test_a_question_who_races_on_a_stack_takes_no_lock(tmp_path: Path) -> None:
    lock = tmp_path / "race.lock"
    assert race_on(lock) is None
    assert not lock.exists()
    with only_race(lock, tmp_path, "quick") as tell:
        tell("20261121T034800Z-quick")
        assert f"pid {os.getpid()}, plan quick, run 20261121T034800Z-quick" in str(race_on(lock))
    assert race_on(lock) is None
    with only_race(lock, tmp_path, "mine"):
        pass
