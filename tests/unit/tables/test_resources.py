"""Memory, disk and money below the table of cells."""

import pytest

from sinkbench.analysis.words import megabytes, money
from sinkbench.errors import ReasonCode
from sinkbench.metrics.cost import COSTS, with_prices
from sinkbench.metrics.memory import RESOURCES
from sinkbench.results import CellSummary, Cost, Memory, Prices, Spread
from sinkbench.tables.cells import render
from sinkbench.tables.lines import price_lines
from sinkbench.tables.percell import cell_table
from tests.support.reasons import because
from tests.support.trials import CLEAN, cell_summary, run_summary

PRICES = Prices(currency="EUR", core_hour=0.04, memory_gb_hour=0.005, disk_gb_month=0.1)


def spread(value: float) -> Spread:
    return Spread(median=value, low=value, high=value, values=[value])


def held(**fields: object) -> CellSummary:
    known = {
        "audit": CLEAN,
        "peak_memory": {
            "kafka": Memory(resident_bytes=9.1e8),
            "connect": Memory(resident_bytes=2.4e9, heap_bytes=1.2e9),
            "elasticsearch": Memory(resident_bytes=1.5e9, heap_bytes=6e8),
            "pgbouncer": Memory(resident_bytes=4e5),
        },
        "total_peak_memory_bytes": spread(4.8e9),
        "total_cpu_seconds_per_million": spread(90.0),
        "disk_bytes_per_record": spread(410.4),
        "fetched_bytes_per_record": 612.0,
    }
    fields = {"label": "elasticsearch/camel-bulk", **known, **fields}
    return cell_summary(str(fields.pop("label")), 1_000.0, **fields)  # type: ignore[arg-type]


def row_of(text: str, below: str) -> list[str]:
    """The first row of the table with that header."""
    lines = text.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(below))
    return lines[start + 2].split()


def test_a_run_that_measured_nothing_of_it_has_no_such_table() -> None:
    bare = run_summary(cell_summary("postgres/jdbc", 5.0))
    assert cell_table(RESOURCES, bare) is None
    assert cell_table(COSTS, bare) is None
    assert price_lines(bare) == []
    assert "memory" not in render(bare)


@pytest.mark.parametrize("currency", ["[/b]", "EUR\\", ":smile:"])
def test_a_currency_is_text_and_no_markup(currency: str) -> None:
    prices = PRICES.model_copy(update={"currency": currency})
    text = render(with_prices(run_summary(held()), prices))
    assert f"cost in {currency} " in text
    assert f"0.04 {currency} a core-hour" in text


def test_what_has_no_price_and_what_has_no_cost_is_said() -> None:
    prices = Prices(currency="EUR", core_hour=0.04, kept_months=3)
    cold = held(tasks=6, at_least=because("still warming", ReasonCode.NOT_WARM))
    assert price_lines(with_prices(run_summary(held(), cold), prices)) == [
        "Prices: 0.04 EUR a core-hour; memory and disk in no cost.",
        "No cost, since the cell did not pass, its rate may not be quoted, its tasks changed, or a figure was not"
        " measured: elasticsearch/camel-bulk with 6 tasks.",
    ]


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        *((None, "-"), (0.0, "0.00"), (1_234.5, "1,234.50"), (1.0, "1.00")),
        *((0.123456, "0.123"), (0.01, "0.0100"), (0.000012345, "0.0000123")),
    ],
)
def test_money_has_two_decimals_or_three_digits(amount: float | None, text: str) -> None:
    assert money(amount) == text


def test_bytes_are_shown_by_the_million() -> None:
    assert [megabytes(each) for each in (None, 12.34e6, 1.2345e9)] == ["-", "12.3", "1,234"]


def test_a_cost_without_its_sum_shows_its_parts() -> None:
    run = run_summary(held(cost=Cost(cpu=0.5)), prices=PRICES)
    assert row_of(render(run), "cost in EUR")[2:] == ["-", "0.500", "-", "-"]
