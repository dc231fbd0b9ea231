"""Prices in a plan or in a file of their own, and what a user is told about a mistake in them."""

from pathlib import Path

import pytest

from sinkbench.errors import PlanError
from sinkbench.plan.plan import Plan
from sinkbench.plan.sections import Prices, load_prices

SOME = "currency: EUR\ncore_hour: 0.04\n"


def read(folder: Path, text: str) -> Prices:
    path = folder / "prices.yaml"
    path.write_text(text, encoding="utf-8")
    return load_prices(path)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(PlanError) as refused:
        read(folder, text)
    return str(refused.value).replace(f"{folder}/", "")


def test_what_has_no_price_is_none_and_a_record_is_kept_for_a_month(tmp_path: Path) -> None:
    found = read(tmp_path, SOME)
    assert (found.currency, found.core_hour, found.memory_gb_hour, found.disk_gb_month) == ("EUR", 0.04, None, None)
    assert found.kept_months == 1
    assert found.as_kept().model_dump() == found.model_dump()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("core_hour: 1\n", "prices.yaml:1: file of prices has no 'currency', which it needs"),
        ("currency: EUR\nmemory_gb_hour: 0\n", "prices.yaml:2: memory_gb_hour must be more than 0"),
        ('currency: "  "\ncore_hour: 1\n', "prices.yaml:1: currency "),
        ("currency: one euro and forty cents\ncore_hour: 1\n", "prices.yaml:1: currency "),
        ("currency: EUR\ncore_hour: .nan\n", "prices.yaml:2: core_hour must be a finite number"),
        ("", "prices.yaml:1: a file of prices must be a mapping"),
    ],
)
def test_other_mistakes_are_told_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    assert refusal(tmp_path, text).startswith(said)


def test_prices_do_not_change_what_a_plan_measures() -> None:
    bare = Plan.model_validate({"name": "p", "pipelines": ["postgres/jdbc"]})
    priced = Plan.model_validate({**bare.whole(), "prices": {"currency": "EUR", "core_hour": 1}})
    assert priced.sha256 == bare.sha256
    assert "currency: EUR" in priced.show()
