"""What the time of one record goes to: the parts of a pipeline's gap to its sink."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.attribution import attribute
from sinkbench.results import Limit
from sinkbench.tables.lines import attribution_lines
from tests.support.present import present
from tests.support.trials import cell_in_blocks, limit_over, run_summary

rates = st.floats(1_000, 500_000)
CELL = "postgres/jdbc@3x1"


@given(st.lists(st.tuples(rates, rates, rates), min_size=1, max_size=7), rates)
def test_the_parts_add_up_to_the_gap_and_each_lies_within_its_range(
    blocks: list[tuple[float, float, float]], connect: float
) -> None:
    pipeline, sink, connector = (dict(enumerate(each)) for each in zip(*blocks, strict=True))
    found = present(attribute(pipeline, sink, connector, connect))
    assert math.isclose(sum(part.estimate for part in found.parts.values()), found.gap.estimate, abs_tol=1e-6)
    for part in (found.gap, *found.parts.values()):
        assert part.low - 1e-6 <= part.estimate <= part.high + 1e-6
        assert part.is_interval == (len(blocks) >= 5)


def test_times_are_subtracted_within_blocks_that_have_all() -> None:
    # The machine is half as fast in block 2, for all alike.
    pipeline, sink, connector = {1: 40_000, 2: 20_000, 3: 1}, {1: 100_000, 2: 50_000}, {1: 80_000, 2: 50_000, 3: 9}
    found = present(attribute(pipeline, sink, connector, 200_000))
    assert (found.blocks, found.gap.low, found.gap.high) == (2, pytest.approx(15), pytest.approx(30))
    assert [part.estimate for part in found.parts.values()] == pytest.approx([5, 11.25, 6.25])


def limit(sink: str, *rates: float, once: float | None = None, **fields: Any) -> Limit:
    return limit_over(Limit(sink=sink, way="COPY", records_per_second=once, **fields), *rates)


def limits(**changed: Limit | None) -> list[Limit]:
    known = {
        "connect": limit("connect", once=200_000),
        "postgres": limit("postgres", *[100_000] * 5),
        "connector": limit("connector", *[80_000] * 5, cells=[CELL]),
    }
    return [each for each in {**known, **changed}.values() if each is not None]


@pytest.mark.parametrize(
    ("rates", "found", "says"),
    [
        ([], limits(), "not divided: it has no rate that may be quoted"),
        ([40_000], limits(postgres=None), "not divided: no limit of postgres was measured"),
        ([40_000], limits(connect=None), "not divided: Connect's limit was not measured"),
        ([40_000], limits(connector=limit("connector", cells=["other"], once=1.0)), "its connector alone was not"),
        ([40_000], limits(connector=limit("connector", cells=[CELL], note="no drop")), "not measured: no drop"),
        ([40_000], limits(postgres=limit("postgres", once=1.0)), "no block has its rate and both limits"),
        # A run of one block has what its search found.
        (
            [40_000],
            limits(postgres=limit("postgres", once=1e5), connector=limit("connector", once=8e4, cells=[CELL])),
            "postgres/jdbc: 15.0 us a record beyond postgres alone: Connect 5.0 us, 33 %; connector 7.5 us, 50 %;"
            " sink's other job 2.5 us, 17 %",
        ),
        ([20_000, 40_000], limits(), "27.5 us (15.0 to 40.0) a record beyond postgres alone"),
        ([20_000, 40_000], limits(), "sink's other job 15.0 us (2.5 to 27.5), 55 % [2 blocks, lowest and highest]"),
        ([20_000] * 5, limits(), "; most of it: sink's other job [5 blocks, 95 % intervals]"),
        ([60_000, 50_000], limits(), "sink's other job 0.0 us (measured -4.2, -5.8 to -2.5), 0.0 %"),
        ([60_000, 50_000], limits(), "a part below 0 counts as 0: services that share cores"),
        ([101_000, 90_000], limits(), "not certainly slower than postgres alone: 0.5 us (-0.1 to 1.1) a record"),
    ],
)
def test_a_cell_has_one_line_with_its_parts_or_what_is_missing(
    rates: list[float], found: list[Limit], says: str
) -> None:
    (said,) = attribution_lines(run_summary(cell_in_blocks("postgres/jdbc", *rates), limits=found))
    assert says in said.replace("\N{MICRO SIGN}s", "us")


def test_a_run_without_limits_of_connectors_says_nothing_of_it() -> None:
    cell = cell_in_blocks("postgres/jdbc", 40_000)
    assert attribution_lines(run_summary(cell, limits=limits(connector=None))) == []
