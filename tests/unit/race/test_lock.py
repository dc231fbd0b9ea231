"""One race at a time: who is refused, and what it is told."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from sinkbench.errors import ResultsError, StackError
from sinkbench.race.leftovers import check_alone, sweep
from sinkbench.race.lock import CHECKOUT_LOCK, held_folder, only_race, race_on
from sinkbench.services.access import Access
from sinkbench.sinks import Capabilities


@pytest.mark.parametrize(
    ("lock", "checkout", "container", "said"),
    [
        ("home", "other", None, r"on this stack \(pid [0-9]+, plan quick, run r1, since .* UTC\);"),
        ("external", "one", None, r"in this checkout \(pid [0-9]+, plan quick, run r1, since"),
        ("external", "one", "controller", r"in this checkout \(container controller, plan quick, run r1, since"),
    ],
)
def test_a_second_race_on_a_stack_or_in_a_checkout_learns_which_race_holds_it(
    lock: str, checkout: str, container: str | None, said: str, tmp_path: Path
) -> None:
    with only_race(tmp_path / "home" / "race.lock", tmp_path / "one", "quick", container) as tell:
        tell("r1")
        second = only_race(tmp_path / lock / "race.lock", tmp_path / checkout, "mine")
        with pytest.raises(StackError, match=f"another race is running {said}"), second:
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
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False).returncode == -9
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
        second = only_race(tmp_path / "race.lock", tmp_path, "mine")
        with pytest.raises(StackError, match=rf"in this checkout \({who}\); wait for it"), second:
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
    assert (race_on(lock), lock.exists()) == (None, False)
    with only_race(lock, tmp_path, "quick") as tell:
        tell("20261121T034800Z-quick")
        assert f"pid {os.getpid()}, plan quick, run 20261121T034800Z-quick" in str(race_on(lock))
    assert race_on(lock) is None
    with only_race(lock, tmp_path, "mine"):
        pass


MADE = ["001", "1000", "pilot", "pilot_3", "limit", "limit_copy", "limit_multi-row insert"]
ALIKE = ["tides", "tides_backup", "tides_of_mine_001", "tides_2026_001", "tides_ab12cd", "tides_ab12cd_01"]


def test_what_a_trial_has_made_is_left_behind_and_what_only_begins_alike_is_not_ours() -> None:
    made = [f"tides_ab12cd_{name}" for name in MADE] + ["tides-ab12cd-001-second", "tides-ab12cd-pilot-2"]
    alike = [*ALIKE, "tides_ab12cd_001_copy", "my_tides_ab12cd_001", "tides_AB12CD_001"]
    cluster = cluster_with({}, shared=False)
    cluster.kafka = Mock(topics=lambda: [*made, *alike], groups=list)
    assert sweep(cluster) == [f"topic {name}" for name in made]


def cluster_with(sinks: dict[str, Any], *, shared: bool) -> Any:
    """A cluster on which nothing was left behind but what its sinks are set to."""
    nothing = SimpleNamespace(connectors=list, only_declared=list, topics=list, groups=list)
    stack = SimpleNamespace(endpoints=SimpleNamespace(shared=shared, sinks=dict.fromkeys(sinks)))
    return SimpleNamespace(stack=stack, connect=nothing, kafka=nothing, sink=sinks.__getitem__)


def sink(reverted: list[str]) -> Any:
    settings: Any = SimpleNamespace(revert=lambda: reverted)
    return SimpleNamespace(leftovers=lambda prefix: [], capabilities=Capabilities(service_settings=settings))


def test_what_a_killed_race_has_set_is_set_back_and_told() -> None:
    left = ["the setting synchronous_commit of postgres"]
    assert sweep(cluster_with({"postgres": sink(left), "elasticsearch": sink([])}, shared=False)) == left


def test_a_connector_that_its_operator_never_made_is_removed_too() -> None:
    cluster, mine = cluster_with({}, shared=False), "tides-ab12cd-001"
    cluster.connect = Mock(connectors=list, only_declared=lambda: [mine, "orders"])
    assert sweep(cluster) == [f"KafkaConnector {mine}"]
    cluster.connect.delete.assert_called_once_with(mine)


def test_services_of_an_external_stack_are_not_set_back(tmp_path: Path) -> None:
    cluster = cluster_with({"postgres": sink(["somebody's"])}, shared=True)
    cluster.stack.lock_file = tmp_path / "race.lock"
    assert sweep(cluster) == []


def test_a_connector_that_runs_on_a_stack_of_ones_own_is_refused_with_what_to_do() -> None:
    endpoints = SimpleNamespace(shared=False, connect={"connect-1": "http://a:1"}, connect_access=Access())
    connect = SimpleNamespace(running=lambda: {"by-hand": 3}, connectors=lambda: ["by-hand", "tides_ab12cd_001"])
    cluster: Any = SimpleNamespace(stack=SimpleNamespace(endpoints=endpoints), connect=connect)
    said = r"^connector by-hand \(3 tasks\) runs .* -X DELETE http://a:1/connectors/by-hand`$"
    with pytest.raises(StackError, match=said):
        check_alone(cluster)
    endpoints.shared = True
    with pytest.raises(StackError, match=r"^connector tides_ab12cd_001 runs"):
        check_alone(cluster)
