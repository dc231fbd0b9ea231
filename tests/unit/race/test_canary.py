"""What a pipeline whose ten records do not arrive is told."""

import pytest

from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.race.canary import Failed, line_of

CELL = expand(Plan.model_validate({"name": "p", "pipelines": ["postgres/jdbc"]}), 3)[0]
WHY = "10 of 10 records did not arrive in postgres"
OWN = "of_tides_ab12cd_canary_1"
LEFT = "left there: delete what is not yours"


@pytest.mark.parametrize(
    ("strays", "removed", "said"),
    [
        ({}, [], ""),
        (
            {"readings": 10},
            [],
            f"; meanwhile 10 went into postgres's readings ({LEFT}); collection.name.format names it",
        ),
        (
            {"old.readings": 1},
            [],
            f"; meanwhile 1 went into postgres's old.readings ({LEFT}); collection.name.format names it",
        ),
        ({OWN: 10}, [OWN], f"; meanwhile 10 went into postgres's {OWN} (removed again)"),
        ({"of_tides_ab12cd_canary_2": 10}, [], ""),
    ],
)
def test_where_the_records_went_instead_is_said_with_the_key_that_names_it(
    strays: dict[str, int], removed: list[str], said: str
) -> None:
    failed = Failed(CELL, "tides_ab12cd_canary_1", {"topics": "tides", "collection.name.format": "readings"}, WHY)
    assert line_of(failed, strays, removed) == f"postgres/jdbc: {WHY}{said}"


def test_a_label_is_not_said_twice() -> None:
    assert (
        line_of(Failed(CELL, "tides_ab12cd_canary_1", {}, "postgres/jdbc: no table"), {}, [])
        == "postgres/jdbc: no table"
    )
