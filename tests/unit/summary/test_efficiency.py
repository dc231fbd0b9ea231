"""What the limits of a run say of its pipelines."""

from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.limits import with_block
from sinkbench.errors import ReasonCode
from sinkbench.metrics.limit import efficiency_and_spread
from sinkbench.results import CellSummary, Limit, LimitInBlock
from sinkbench.tables.cells import render
from sinkbench.tables.lines import limit_line
from tests.support.present import present
from tests.support.trials import cell_in_blocks, cell_summary, run_summary, with_limits


def cell(label: str, rate: float | None, **fields: object) -> CellSummary:
    return cell_summary(label, *([] if rate is None else [rate]), **fields)  # type: ignore[arg-type]


def limit(sink: str, rate: float | None, way: str = "COPY", **fields: object) -> Limit:
    return Limit.model_validate(
        {"sink": sink, "way": way, "records_per_second": rate, "connections": 2, "batch": 1024, **fields}
    )


def test_efficiency_is_the_median_rate_divided_by_the_limit_of_the_sinks_fastest_way() -> None:
    limits = [limit("postgres", 130_000, "INSERT"), limit("postgres", 200_000), limit("elasticsearch", 50_000, "bulk")]
    (found,) = with_limits([cell("postgres/jdbc", 80_000)], limits)
    assert (found.limit_records_per_second, found.efficiency) == (200_000, 0.4)


def test_a_sink_that_the_plan_sets_otherwise_is_not_the_one_whose_limit_was_measured() -> None:
    limits = [limit("postgres", 200_000)]
    quick = cell("postgres/jdbc", 80_000, settings={"postgres": {"synchronous_commit": "off"}})
    pooled = cell("postgres/jdbc", 80_000, settings={"pgbouncer": {"pool_mode": "session"}})
    assert [each.efficiency for each in with_limits([quick, pooled], limits)] == [None, 0.4]


def in_blocks(*rates: float | None, way: str = "COPY") -> Limit:
    """A limit of PostgreSQL with these rates in the blocks from 1 on."""
    found = [
        LimitInBlock(block=block, records_per_second=rate, problem=None if rate else "429")
        for block, rate in enumerate(rates, start=1)
    ]
    return reduce(with_block, found, limit("postgres", 500_000, way))


def rated(*rates: float, **fields: Any) -> CellSummary:
    return cell_in_blocks("postgres/jdbc", *rates, **fields)


def test_efficiency_is_made_of_rate_and_limit_in_the_same_block() -> None:
    # The machine is half as fast in every other block, which moves both alike.
    limits = [in_blocks(100_000, 50_000, 100_000, 50_000, 100_000)]
    (found,) = with_limits([rated(60_000, 30_000, 60_000, 30_000, 60_000)], limits)
    assert (found.efficiency, found.limit_records_per_second) == (0.6, 100_000)
    shares = present(found.efficiency_by_block)
    assert shares.values == pytest.approx([0.6] * 5)
    assert shares.interval is not None
    assert (shares.interval.low, shares.interval.high) == pytest.approx((0.6, 0.6))


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)), min_size=1, max_size=8))
def test_efficiency_lies_between_its_lowest_and_highest_block(pairs: list[tuple[float, float]]) -> None:
    rates, limits = zip(*pairs, strict=True)
    (found,) = with_limits([rated(*rates)], [in_blocks(*limits)])
    shares = present(found.efficiency_by_block)
    assert shares.low <= shares.median * (1 + 1e-9)
    assert shares.median <= shares.high * (1 + 1e-9)
    assert (shares.interval is None) == (len(pairs) < 5)


def test_a_block_without_a_limit_gives_no_pair() -> None:
    (found,) = with_limits([rated(60.0, 60.0, 60.0, 60.0, 60.0)], [in_blocks(100.0, None, 120.0, 100.0, 100.0)])
    shares = present(found.efficiency_by_block)
    assert (sorted(shares.blocks), shares.interval) == ([1, 3, 4, 5], None)


def test_without_a_block_that_has_both_there_is_no_efficiency() -> None:
    (found,) = with_limits([rated(60.0, blocks=[2])], [in_blocks(100.0)])
    assert (found.efficiency, found.efficiency_by_block, found.limit_records_per_second) == (None, None, 100.0)


def test_a_cell_that_was_not_warm_or_steady_has_no_efficiency() -> None:
    early = {"code": ReasonCode.NOT_WARM, "text": "still warming", "figures": {"records_per_second": 50.0}}
    (found,) = with_limits([rated(60.0, at_least=early)], [in_blocks(100.0)])
    assert (found.efficiency, found.efficiency_by_block) == (None, None)


def test_a_cell_without_a_rate_to_use_has_a_limit_but_no_efficiency() -> None:
    (found,) = with_limits([cell("postgres/jdbc", 80_000, invalid=["died"])], [limit("postgres", 100_000)])
    assert (found.limit_records_per_second, found.efficiency) == (100_000, None)


@pytest.mark.parametrize("limits", [[], [limit("postgres", None)], [limit("elasticsearch", 50_000)]])
def test_without_a_limit_of_its_sink_a_cell_has_neither_limit_nor_efficiency(limits: list[Limit]) -> None:
    (found,) = with_limits([cell("postgres/jdbc", 80_000)], limits)
    assert (found.limit_records_per_second, found.efficiency) == (None, None)


@pytest.mark.parametrize(
    ("measured", "says"),
    [
        (
            limit("elasticsearch", 9_000, "bulk", connections=1),
            "limit of elasticsearch: 9,000 records/s by bulk of 1,024 records over 1 connection",
        ),
        (
            Limit(sink="postgres", way="COPY", note="permission denied"),
            "limit of postgres by COPY: not measured: permission denied",
        ),
    ],
)
def test_a_limit_has_one_line(measured: Limit, says: str) -> None:
    assert limit_line(measured) == says


def test_a_limit_in_blocks_is_shown_with_its_interval_or_its_lowest_and_highest_block() -> None:
    assert limit_line(in_blocks(100_000, 90_000, 120_000)) == (
        "limit of postgres: 100,000 records/s (90,000-120,000, the lowest and highest of 3 blocks)"
        " by COPY of 1,024 records over 2 connections"
    )
    assert "records/s (100,000-100,000, 5 blocks, 95 % interval) by COPY" in limit_line(in_blocks(*[100_000] * 5))
    assert limit_line(in_blocks(100_000)).startswith("limit of postgres: 100,000 records/s by COPY")


def test_a_limit_says_in_how_many_blocks_it_could_not_be_measured() -> None:
    assert limit_line(in_blocks(100_000, None, 90_000)).endswith("; not measured in 1 of 3 blocks: 429")
    assert limit_line(in_blocks(None, None)) == "limit of postgres by COPY: not measured: 429"


@pytest.mark.parametrize(
    ("blocks", "shown"), [(5, ["60 %", "60-60"]), (3, ["60 %", "(60-60)"]), (1, ["60 %"]), (0, ["12 %"])]
)
def test_the_table_shows_the_span_of_an_efficiency_if_there_is_one(blocks: int, shown: list[str]) -> None:
    (found,) = with_limits([rated(*[60_000.0] * max(blocks, 1))], [in_blocks(*[100_000] * blocks)])
    assert efficiency_and_spread(found) == shown
    text = render(run_summary(found))
    assert all(part in text for part in shown)
