"""Which `docker compose up` asks for a race."""

import pytest

from sinkbench.stack.onup import asked_for

THEN, NOW = ["2026-11-22T10:00:00Z", "2026-11-22T10:00:05Z"], ["2026-11-22T11:00:00Z", "2026-11-22T11:00:05Z"]


@pytest.mark.parametrize(
    ("last", "plan", "asked"),
    [
        pytest.param({}, "", True, id="the first"),
        pytest.param({"since": THEN, "plan": ""}, "", True, id="the services were started anew"),
        pytest.param({"since": NOW, "plan": ""}, "", False, id="a change of the project"),
        pytest.param({"since": [THEN[0], NOW[1]], "plan": ""}, "", False, id="one service was made anew"),
        pytest.param({"since": NOW, "plan": ""}, "plans/x.yaml", True, id="another plan"),
        pytest.param({"since": NOW, "plan": "plans/x.yaml"}, "", False, id="no plan any more"),
    ],
)
def test_an_up_asks_for_a_race(last: dict[str, object], plan: str, asked: bool) -> None:
    assert asked_for(last, NOW, plan) is asked
    # Without an engine that tells only the first asks.
    assert asked_for({}, [], "")
    assert not asked_for({"since": [], "plan": ""}, [], "")
