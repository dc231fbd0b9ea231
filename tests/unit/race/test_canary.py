"""What a pipeline whose ten records do not arrive is told."""

from unittest.mock import MagicMock

import pytest

from sinkbench.errors import ServiceError, StackError
from sinkbench.plan.cells import expand
from sinkbench.race import canary
from sinkbench.race.canary import Failed, check_pipelines, line_of
from tests.support.trials import plan_of

CELL = expand(plan_of(), 3)[0]
WHY = "10 of 10 records did not arrive in postgres"
LEFT = "(left there: delete what is not yours); collection.name.format names it"
OWN = "of_tides_ab12cd_canary_1"


@pytest.mark.parametrize(
    ("strays", "removed", "said"),
    [
        ({}, [], ""),
        ({"readings": 10}, [], f"; meanwhile 10 went into postgres's readings {LEFT}"),
        ({"old.readings": 1}, [], f"; meanwhile 1 went into postgres's old.readings {LEFT}"),
        ({OWN: 10}, [OWN], f"; meanwhile 10 went into postgres's {OWN} (removed again)"),
        ({"of_tides_ab12cd_canary_2": 10}, [], ""),
    ],
)
def test_where_the_records_went_instead_is_said_with_the_key_that_names_it(
    strays: dict[str, int], removed: list[str], said: str
) -> None:
    config = {"topics": "tides", "collection.name.format": "readings"}
    # A label that is there is not said twice.
    for why in (WHY, f"postgres/jdbc: {WHY}"):
        failed = Failed(CELL, "tides_ab12cd_canary_1", config, why)
        assert line_of(failed, strays, removed) == f"postgres/jdbc: {WHY}{said}"


def test_a_pipeline_that_may_fail_is_sent_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canary, "take", MagicMock(side_effect=AssertionError))
    plan = plan_of(pipelines=[{"pipeline": "postgres/jdbc", "may_fail": True}])
    check_pipelines(MagicMock(plan=plan), expand(plan, 3))


def test_a_service_that_ends_meanwhile_is_told_with_what_was_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canary, "take", MagicMock(side_effect=ServiceError("AdminShutdown: terminating connection")))
    with pytest.raises(StackError, match=r"each pipeline was broken off: AdminShutdown: .*; mend that and race again$"):
        check_pipelines(MagicMock(), [CELL])
