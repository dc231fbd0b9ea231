"""What a race takes for left behind on its own stack: names as trials give, and no other that begins alike."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sinkbench.errors import StackError
from sinkbench.race.leftovers import Book, check_alone, is_leftover, sweep
from sinkbench.services.access import Access
from sinkbench.sinks import Capabilities

OWN: Any = SimpleNamespace(endpoints=SimpleNamespace(shared=False))


@pytest.mark.parametrize("name", ["001", "1000", "pilot", "pilot_3", "limit", "limit_copy", "limit_multi-row insert"])
def test_what_a_trial_has_made_is_left_behind(name: str) -> None:
    assert is_leftover(OWN)(f"tides_ab12cd_{name}")


@pytest.mark.parametrize(
    "name",
    ["tides", "tides_backup", "tides_of_mine_001", "tides_2026_001", "tides_ab12cd", "tides_ab12cd_01",
     "tides_ab12cd_001_copy", "my_tides_ab12cd_001", "tides_AB12CD_001"],
)  # fmt: skip
def test_what_only_begins_alike_is_not_ours(name: str) -> None:
    assert not is_leftover(OWN)(name)


def cluster_with(sinks: dict[str, Any], *, shared: bool) -> Any:
    """A cluster on which nothing was left behind but what its sinks are set to."""
    nothing = SimpleNamespace(connectors=list, topics=list, groups=list)
    stack = SimpleNamespace(endpoints=SimpleNamespace(shared=shared, sinks=dict.fromkeys(sinks)))
    return SimpleNamespace(stack=stack, connect=nothing, kafka=nothing, sink=sinks.__getitem__)


def sink(reverted: list[str]) -> Any:
    settings: Any = SimpleNamespace(revert=lambda: reverted)
    return SimpleNamespace(leftovers=lambda prefix: [], capabilities=Capabilities(service_settings=settings))


def test_what_a_killed_race_has_set_is_set_back_and_told() -> None:
    left = ["the setting synchronous_commit of postgres"]
    assert sweep(cluster_with({"postgres": sink(left), "elasticsearch": sink([])}, shared=False)) == left


def test_services_of_an_external_stack_are_not_set_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Book, "of", lambda stack: Book(tmp_path / "runs"))
    assert sweep(cluster_with({"postgres": sink(["somebody's"])}, shared=True)) == []


def test_a_connector_that_runs_on_a_stack_of_ones_own_is_refused_with_what_to_do() -> None:
    endpoints = SimpleNamespace(shared=False, connect={"connect-1": "http://a:1"}, connect_access=Access())
    connect = SimpleNamespace(running=lambda: {"by-hand": 3}, connectors=lambda: ["by-hand", "tides_ab12cd_001"])
    cluster: Any = SimpleNamespace(stack=SimpleNamespace(endpoints=endpoints), connect=connect)
    with pytest.raises(
        StackError, match=r"^connector by-hand \(3 tasks\) runs .* -X DELETE http://a:1/connectors/by-hand`$"
    ):
        check_alone(cluster)
    endpoints.shared = True
    with pytest.raises(StackError, match=r"^connector tides_ab12cd_001 runs"):
        check_alone(cluster)
