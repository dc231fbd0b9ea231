"""The table: what a reader of a run sees, with memory, disk and money below it."""

import pytest

from sinkbench.errors import ReasonCode
from sinkbench.metrics.cost import with_prices
from sinkbench.results import Audit, Connections, Cost, Prices, Profile, Spread
from sinkbench.tables.cells import render
from tests.support.reasons import because
from tests.support.trials import CLEAN, cell_summary, run_summary


def shown(label: str, *rates: float, **fields: object) -> str:
    """The tables of a run of one cell."""
    cell = {"trials": 3, "audit": CLEAN, **fields}
    return render(run_summary(cell_summary(label, *rates, **cell)))  # type: ignore[arg-type]


def test_reasons_that_differ_only_in_their_numbers_are_said_once() -> None:
    stalls = [because(f"no progress for {seconds} s", ReasonCode.NO_PROGRESS) for seconds in (30, 31, 32)]
    reasons = [because("connect-1 died"), *stalls, because("it slept", ReasonCode.UNKNOWN)]
    text = shown("a/b", reasons=reasons, passed=False, verdict="invalid: connect-1 died")
    assert "a/b: invalid: connect-1 died\na/b: no progress for 30 s\na/b: it slept\n" in text


def test_lost_and_duplicated_records_are_loud() -> None:
    lossy = Audit(produced=5000, stored=3770, lost=1234, duplicates=4)
    faults = [because("LOST 1,234", ReasonCode.LOST), because("DUPLICATED 4", ReasonCode.DUPLICATED)]
    text = shown("a/b", 5, audit=lossy, passed=False, faults=faults, verdict="LOST 1,234; DUPLICATED 4")
    assert next(line for line in text.splitlines() if line.startswith("a/b")).split()[-3:] == ["1,234", "4", "LOST"]
    assert [each for each in (" DUPLICATED\n", "a/b: LOST 1,234; DUPLICATED 4\n") if each not in text] == []


def test_connections_that_others_hid_are_not_known_and_say_so() -> None:
    text = shown("postgres/jdbc", 1_000, 2_000, connections=Connections(others=2))
    assert [each for each in ("not known:", "2 others") if each not in text] == []


def test_the_frames_on_top_stand_beside_what_limits_a_cell() -> None:
    top = {"org.apache.lucene.Codec.encode": 0.41, "java.util.HashMap.get": 0.02}
    profile = Profile(cell="a/b@3x1", service="elasticsearch", samples=1_234, top=top, file="profiles/x/y.html")
    text = render(run_summary(cell_summary("a/b", 5), profiles=[profile]))
    said = "a/b@3x1, on top of elasticsearch's stacks (1,234 samples): 41 % org.apache.lucene.Codec.encode, 2.0 %"
    assert said in " ".join(text.split())


def test_next_to_a_zero_stands_how_many_trials_were_not_audited() -> None:
    row = [line.split() for line in shown("postgres/jdbc", 1_000, 2_000, not_audited=1).splitlines()]
    start = next(place for place, words in enumerate(row) if words[:1] == ["postgres/jdbc"])
    assert row[start][-3:] == ["0", "0", "ok"]
    assert list(row[start + 1 : start + 4]) == [
        ["(1", "of", "3", "(1", "of", "3"],
        ["not", "not"],
        ["audited)", "audited)"],
    ]


def test_text_that_looks_like_markup_is_printed_as_it_is() -> None:
    text = shown("a/b", notes=["[/bold] [red]x"], invalid=["[/y]"], passed=False, verdict="invalid: [/y]")
    assert [each for each in ("[/bold] [red]x", "invalid: [/y]") if each not in text] == []


def sure(low: float, high: float) -> dict[str, object]:
    return {"low": low, "high": high, "confidence": 0.95, "method": "m", "blocks": 5}


def test_scaling_is_shown_below_with_its_peak_or_why_there_is_no_fit() -> None:
    law = {
        "label": "a/b",
        "supported": True,
        "points": [{"tasks": 3, "measured": 3_000, "fitted": 2_990, "added_worker": 880.4}],
        "one_task": {"estimate": 1_020, "interval": sure(1_000, 1_040)},
        "contention": {"estimate": 0.0512},
        "coherency": {"estimate": 0.01, "interval": sure(0.008, 0.012)},
        "peak_tasks": {"estimate": 9.7, "interval": sure(9, 11)},
    }
    none = {"label": "c/d", "supported": False, "why": "too few", "points": [{"tasks": 6, "measured": 5, "fitted": 9}]}
    text = render(run_summary(cell_summary("a/b", 5), scaling=[law, none]))
    assert ["a/b", "3", "3,000", "2,990", "+880"] in [line.split() for line in text.splitlines()]
    assert ["c/d", "6", "5", "-", "-"] in [line.split() for line in text.splitlines()]
    assert (
        "a/b: one task 1,020 (1,000 to 1,040) records/s, contention 0.051, coherency 0.01 (0.008 to 0.012);"
        " the rate peaks at 10 (9 to 11) tasks\n"
    ) in text
    assert "c/d: the data do not support a fit: too few\n" in text
    flat = {**law, "peak_tasks": None, "coherency": {"estimate": 0}}
    assert "no peak within the data (too few trials for an interval)" in render(run_summary(scaling=[flat]))


PRICES = Prices(currency="EUR", core_hour=0.04, memory_gb_hour=0.005, disk_gb_month=0.1)


@pytest.mark.parametrize("currency", ["[/b]", "EUR\\", ":smile:"])
def test_a_currency_is_text_and_no_markup(currency: str) -> None:
    prices = PRICES.model_copy(update={"currency": currency})
    cpu = Spread(median=90.0, low=90.0, high=90.0, values=[90.0])
    text = render(with_prices(run_summary(cell_summary("a/b", 1_000.0, total_cpu_seconds_per_million=cpu)), prices))
    assert [each for each in (f"cost in {currency} ", f"0.04 {currency} a core-hour") if each not in text] == []


def test_a_cost_without_its_sum_shows_its_parts() -> None:
    run = run_summary(cell_summary("a/b", 1_000.0, cost=Cost(cpu=0.5)), prices=PRICES)
    _, _, table = render(run).partition("\ncost in EUR")
    assert table.splitlines()[2].split()[2:] == ["-", "0.500", "-", "-"]
