"""Memory, disk and money below the table of cells."""

import pytest

from sinkbench.analysis.words import money
from sinkbench.metrics.cost import with_prices
from sinkbench.results import Cost, Prices, Spread
from sinkbench.tables.cells import render
from tests.support.trials import cell_summary, run_summary

PRICES = Prices(currency="EUR", core_hour=0.04, memory_gb_hour=0.005, disk_gb_month=0.1)


@pytest.mark.parametrize("currency", ["[/b]", "EUR\\", ":smile:"])
def test_a_currency_is_text_and_no_markup(currency: str) -> None:
    prices = PRICES.model_copy(update={"currency": currency})
    cpu = Spread(median=90.0, low=90.0, high=90.0, values=[90.0])
    text = render(with_prices(run_summary(cell_summary("a/b", 1_000.0, total_cpu_seconds_per_million=cpu)), prices))
    assert [each for each in (f"cost in {currency} ", f"0.04 {currency} a core-hour") if each not in text] == []


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        *((None, "-"), (0.0, "0.00"), (1_234.5, "1,234.50"), (1.0, "1.00")),
        *((0.123456, "0.123"), (0.01, "0.0100"), (0.000012345, "0.0000123")),
    ],
)
def test_money_has_two_decimals_or_three_digits(amount: float | None, text: str) -> None:
    assert money(amount) == text


def test_a_cost_without_its_sum_shows_its_parts() -> None:
    run = run_summary(cell_summary("a/b", 1_000.0, cost=Cost(cpu=0.5)), prices=PRICES)
    _, _, table = render(run).partition("\ncost in EUR")
    assert table.splitlines()[2].split()[2:] == ["-", "0.500", "-", "-"]
