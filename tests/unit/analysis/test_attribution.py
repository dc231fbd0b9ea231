"""What the time of one record goes to: the parts of a pipeline's gap to its sink."""

import math
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.attribution import Attribution, attribute, attribution_of
from sinkbench.analysis.limits import with_block
from sinkbench.results import CellSummary, Limit, LimitInBlock
from sinkbench.tables.lines import attribution_lines
from tests.support.present import present
from tests.support.trials import cell_in_blocks, cell_summary, run_summary

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
    assert found.parts["Connect"].low == found.parts["Connect"].high


def test_each_part_is_the_difference_of_two_times_within_a_block() -> None:
    # The machine is half as fast in block 2, for all alike; block 3 has no limit.
    found = attribute({1: 40_000, 2: 20_000, 3: 1}, {1: 100_000, 2: 50_000}, {1: 80_000, 2: 50_000, 3: 9}, 200_000)
    assert found is not None
    assert found.blocks == 2
    assert (found.gap.low, found.gap.high) == pytest.approx((15, 30))
    assert found.parts["Connect"].estimate == pytest.approx(5)
    assert found.parts["connector"].estimate == pytest.approx((7.5 + 15) / 2)
    assert found.parts["sink's other job"].estimate == pytest.approx((2.5 + 10) / 2)


def test_rates_of_different_blocks_are_not_set_against_each_other() -> None:
    assert attribute({1: 10.0}, {2: 20.0}, {1: 15.0}, 30.0) is None


def limit(sink: str, *rates: float, once: float | None = None, **fields: Any) -> Limit:
    found = [LimitInBlock(block=block, records_per_second=rate) for block, rate in enumerate(rates, start=1)]
    return reduce(with_block, found, Limit(sink=sink, way="COPY", records_per_second=once, **fields))


def limits(*without: str, **changed: Limit) -> list[Limit]:
    known = {
        "connect": limit("connect", once=200_000),
        "postgres": limit("postgres", 100_000, 100_000),
        "connector": limit("connector", 80_000, 80_000, cells=[CELL]),
    }
    return [each for name, each in {**known, **changed}.items() if name not in without]


def rated(*rates: float, **fields: Any) -> CellSummary:
    return cell_in_blocks("postgres/jdbc", *rates, **fields)


@pytest.mark.parametrize(
    ("cell", "found", "why"),
    [
        (rated(), limits(), "it has no rate that may be quoted"),
        (rated(40_000), limits("postgres"), "no limit of postgres was measured"),
        (rated(40_000), limits("connect"), "Connect's limit was not measured"),
        (rated(40_000), limits("connector"), "its connector alone was not measured"),
        (
            rated(40_000),
            limits(connector=limit("connector", cells=["others"], once=1.0)),
            "its connector alone was not",
        ),
        (rated(40_000), limits(connector=limit("connector", cells=[CELL], note="no drop")), "not measured: no drop"),
        (rated(40_000, blocks=[7]), limits(), "no block has its rate and both limits"),
    ],
)
def test_a_figure_that_is_missing_is_named_instead_of_an_attribution(
    cell: CellSummary, found: list[Limit], why: str
) -> None:
    said = attribution_of(cell, run_summary(cell, limits=found))
    assert isinstance(said, str)
    assert why in said


def test_a_run_of_one_block_has_what_its_search_found() -> None:
    once = [
        limit("postgres", once=100_000),
        limit("connect", once=200_000),
        limit("connector", once=80_000, cells=[CELL]),
    ]
    found = attribution_of(cell_summary("postgres/jdbc", 40_000), run_summary(limits=once))
    assert isinstance(found, Attribution)
    assert (found.blocks, found.gap.estimate) == (1, pytest.approx(15))


def lines(*cells: CellSummary, found: list[Limit]) -> list[str]:
    return attribution_lines(run_summary(*cells, limits=found))


def test_a_cell_has_one_line_with_microseconds_and_shares() -> None:
    assert lines(rated(40_000, 40_000), found=limits()) == [
        "postgres/jdbc: 15.0 \N{MICRO SIGN}s a record beyond postgres alone: Connect 5.0 \N{MICRO SIGN}s, 33 %;"
        " connector 7.5 \N{MICRO SIGN}s, 50 %; sink's other job 2.5 \N{MICRO SIGN}s, 17 %"
        " [2 blocks, lowest and highest]"
    ]
    (varied,) = lines(rated(20_000, 40_000), found=limits())
    assert "27.5 \N{MICRO SIGN}s (15.0 to 40.0) a record beyond postgres alone" in varied
    (interval,) = lines(
        rated(*[40_000] * 5),
        found=limits(
            postgres=limit("postgres", *[100_000] * 5), connector=limit("connector", *[50_000] * 5, cells=[CELL])
        ),
    )
    assert "most of it: connector [5 blocks, 95 % intervals]" in interval


def test_a_part_below_zero_counts_as_zero_and_is_shown_with_what_was_measured() -> None:
    (line,) = lines(rated(60_000, 50_000), found=limits())
    assert "sink's other job 0.0 \N{MICRO SIGN}s (measured -4.2, -5.8 to -2.5), 0.0 %" in line
    assert line.endswith("services that share cores, or work at once, need not add up")


def test_a_gap_that_is_not_certain_is_not_divided() -> None:
    (line,) = lines(rated(101_000, 90_000), found=limits())
    assert "not certainly slower than postgres alone" in line
    assert "Connect" not in line


def test_a_run_without_limits_of_connectors_says_nothing_of_it() -> None:
    assert lines(rated(40_000), found=limits("connector")) == []
