"""What the limits of a run say of its pipelines."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.metrics.limit import efficiency_lines
from sinkbench.plan.cells import Cell
from sinkbench.results import CellSummary, Limit
from sinkbench.summary.cells import summarize
from sinkbench.tables.cells import render
from sinkbench.tables.lines import limit_line
from tests.support.present import present
from tests.support.trials import JDBC, a_cell, limit_over, run_summary, trial


def limit(sink: str, rate: float | None, way: str = "COPY", **fields: object) -> Limit:
    return Limit.model_validate(
        {"sink": sink, "way": way, "records_per_second": rate, "connections": 2, "batch": 1024, **fields}
    )


def limited(*rates: float, limits: Sequence[Limit], cell: Cell = JDBC, first: int = 1, **fields: Any) -> CellSummary:
    """A cell with these rates, the fastest trial first, in the blocks from the first one on."""
    taken = sorted(((rate, block) for block, rate in enumerate(rates, first)), reverse=True)
    (found,) = summarize([cell], [trial(rate, cell, block=block, **fields) for rate, block in taken], limits=limits)
    return found


def test_efficiency_is_the_median_rate_divided_by_the_limit_of_the_sinks_fastest_way() -> None:
    limits = [limit("postgres", 130_000, "INSERT"), limit("postgres", 200_000), limit("elasticsearch", 50_000, "bulk")]
    for cell in (JDBC, a_cell(settings={"pgbouncer": {"pool_mode": "session"}})):
        found = limited(80_000, limits=limits, cell=cell)
        assert (found.limit_records_per_second, found.efficiency) == (200_000, 0.4)


def in_blocks(*rates: float | None, way: str = "COPY") -> Limit:
    """A limit of PostgreSQL with these rates in the blocks from 1 on."""
    return limit_over(limit("postgres", 500_000, way), *rates)


def test_efficiency_is_made_of_rate_and_limit_in_the_same_block() -> None:
    # The machine is half as fast in every other block, which moves both alike.
    limits = [in_blocks(100_000, 50_000, 100_000, 50_000, 100_000)]
    found = limited(60_000, 30_000, 60_000, 30_000, 60_000, limits=limits)
    assert (found.efficiency, found.limit_records_per_second) == (0.6, 100_000)
    shares = present(found.efficiency_by_block)
    assert shares.values == pytest.approx([0.6] * 5)
    assert ((interval := present(shares.interval)).low, interval.high) == pytest.approx((0.6, 0.6))


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)), min_size=1, max_size=8))
def test_efficiency_lies_between_its_lowest_and_highest_block(pairs: list[tuple[float, float]]) -> None:
    rates, limits = zip(*pairs, strict=True)
    shares = present(limited(*rates, limits=[in_blocks(*limits)]).efficiency_by_block)
    assert shares.low <= shares.median * (1 + 1e-9)
    assert shares.median <= shares.high * (1 + 1e-9)
    assert (shares.interval is None) == (len(pairs) < 5)


def test_a_block_without_a_limit_gives_no_pair() -> None:
    found = limited(*[60.0] * 5, limits=[in_blocks(100.0, None, 120.0, 100.0, 100.0)])
    shares = present(found.efficiency_by_block)
    assert (sorted(shares.blocks), shares.interval) == ([1, 3, 4, 5], None)


@pytest.mark.parametrize(
    ("taken", "limits", "known"),
    [
        # Of another block, not warm, and invalid.
        ({"first": 2}, [in_blocks(100.0)], 100.0),
        ({"warm": False}, [in_blocks(100.0)], 100.0),
        ({"invalid": ["died"]}, [limit("postgres", 100.0)], 100.0),
        ({}, [], None),
        ({}, [limit("postgres", None)], None),
        ({}, [limit("elasticsearch", 50_000)], None),
        # The limit is that of a sink that the plan does not set otherwise.
        ({"cell": a_cell(settings={"postgres": {"fsync": "off"}})}, [limit("postgres", 200_000)], None),
    ],
)
def test_without_a_rate_and_a_limit_of_the_same_block_there_is_no_efficiency(
    taken: dict[str, Any], limits: list[Limit], known: float | None
) -> None:
    found = limited(60.0, limits=limits, **taken)
    assert (found.efficiency, found.efficiency_by_block, found.limit_records_per_second) == (None, None, known)


@pytest.mark.parametrize(
    ("measured", "says"),
    [
        (limit("a", 9_000, "bulk", connections=1), "of a: 9,000 records/s by bulk of 1,024 records over 1 connection"),
        (Limit(sink="a", way="COPY", note="permission denied"), "of a by COPY: not measured: permission denied"),
        (
            in_blocks(100_000, 90_000, 120_000),
            "of postgres: 100,000 records/s (90,000-120,000, the lowest and highest of 3 blocks)"
            " by COPY of 1,024 records over 2 connections",
        ),
        (in_blocks(*[100_000] * 5), "records/s (100,000-100,000, 5 blocks, 95 % interval) by COPY"),
        (in_blocks(100_000), "of postgres: 100,000 records/s by COPY"),
        (in_blocks(100_000, None, 90_000), "; not measured in 1 of 3 blocks: 429"),
        (in_blocks(None, None), "limit of postgres by COPY: not measured: 429"),
    ],
)
def test_a_limit_has_one_line_with_what_its_blocks_say(measured: Limit, says: str) -> None:
    assert says in limit_line(measured)


@pytest.mark.parametrize(
    ("blocks", "rate", "shown"),
    [
        (5, 60_000.0, ["60 %", "60-60"]),
        (3, 60_000.0, ["60 %", "(60-60)"]),
        (1, 60_000.0, ["60 %"]),
        (0, 60_000.0, ["12 %"]),
        *((blocks, 130_000.0, ["limit", "too low"]) for blocks in (5, 3, 1)),
        (0, 501_000.0, ["limit", "too low"]),
    ],
)
def test_the_table_shows_the_span_of_an_efficiency_if_there_is_one_and_a_limit_that_is_too_low(
    blocks: int, rate: float, shown: list[str]
) -> None:
    found = limited(*[rate] * max(blocks, 1), limits=[in_blocks(*[100_000] * blocks)])
    assert efficiency_lines(found) == shown
    text = render(run_summary(found))
    assert all(part in text for part in shown)
