"""The cost of a million records: the formula, and what has none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.errors import ReasonCode
from sinkbench.metrics.cost import cost_of, with_prices
from sinkbench.results import CellSummary, Prices, Spread
from tests.support.present import present
from tests.support.reasons import because
from tests.support.trials import cell_summary, run_summary

PRICES = Prices(currency="EUR", core_hour=0.036, memory_gb_hour=0.0036, disk_gb_month=0.1)


def spread(value: float) -> Spread:
    return Spread(median=value, low=value, high=value, values=[value])


def cell(rate: float = 1_000.0, **fields: object) -> CellSummary:
    """A cell that takes 100 s of a core, 2 GB of memory, and half a kilobyte of disk a record."""
    taken = {
        "total_cpu_seconds_per_million": spread(100.0),
        "total_peak_memory_bytes": spread(2e9),
        "disk_bytes_per_record": spread(500.0),
    }
    return cell_summary("postgres/jdbc", rate, **{**taken, **fields})  # type: ignore[arg-type]


def test_each_part_is_its_price_times_what_a_million_records_take() -> None:
    found = present(cost_of(cell(), PRICES))
    assert found.cpu == pytest.approx(0.001)
    # A million records take 1,000 s.
    assert (found.memory, found.disk) == (pytest.approx(0.002), pytest.approx(0.05))
    assert found.per_million == pytest.approx(0.053)


def test_disk_costs_as_long_as_records_are_kept_and_what_has_no_price_is_left_out_of_the_sum() -> None:
    assert present(cost_of(cell(), PRICES.model_copy(update={"kept_months": 12.0}))).disk == pytest.approx(0.6)
    free = present(cost_of(cell(disk_bytes_per_record=None), PRICES.model_copy(update={"disk_gb_month": None})))
    assert (free.disk, free.per_million) == (None, pytest.approx(0.003))
    unmeasured = present(cost_of(cell(total_peak_memory_bytes=None), PRICES))
    assert (unmeasured.memory, unmeasured.per_million, unmeasured.cpu) == (None, None, pytest.approx(0.001))


@pytest.mark.parametrize(
    "fields",
    [
        {"invalid": ["so"]},
        {"at_least": because("still warming", ReasonCode.NOT_WARM)},
        {"records_per_second": None},
        {"passed": False},
        {"rescale": {"tasks_before": 1}},
    ],
)
def test_a_cell_that_did_not_pass_was_re_scaled_or_has_no_rate_to_quote_has_no_cost(fields: dict[str, object]) -> None:
    assert cost_of(cell(**fields), PRICES) is None


def test_a_run_is_priced_anew_and_loses_its_costs_with_its_prices() -> None:
    run = with_prices(run_summary(cell()), PRICES)
    assert run.prices == PRICES
    assert run.cells[0].cost == cost_of(cell(), PRICES)
    assert with_prices(run, None) == run_summary(cell())


@given(st.floats(min_value=0.001, max_value=1e3), st.floats(min_value=1.0, max_value=1e6))
def test_twice_the_price_is_twice_the_cost_and_a_faster_cell_needs_its_memory_for_less_time(
    factor: float, rate: float
) -> None:
    once, twice = (
        cost_of(cell(rate), Prices(currency="EUR", core_hour=each, memory_gb_hour=each, disk_gb_month=each))
        for each in (factor, 2 * factor)
    )
    faster = cost_of(cell(2 * rate), Prices(currency="EUR", core_hour=factor, memory_gb_hour=factor))
    assert once is not None and twice is not None and faster is not None  # noqa: PT018
    assert twice.per_million == pytest.approx(2 * (once.per_million or 0))
    assert (faster.memory, faster.cpu) == (pytest.approx((once.memory or 0) / 2), pytest.approx(once.cpu))
