"""The table: what a reader of a run sees."""

from sinkbench.errors import ReasonCode
from sinkbench.results import Audit, CellSummary, Connections, PlanRef, RunSummary
from sinkbench.tables.cells import render
from tests.support.reasons import because
from tests.support.trials import CLEAN, cell_summary, run_summary


def cell(label: str, *rates: float, **fields: object) -> CellSummary:
    return cell_summary(label, *rates, **{"trials": 3, "audit": CLEAN, **fields})  # type: ignore[arg-type]


def summary(*cells: CellSummary, **fields: object) -> RunSummary:
    bare = {
        "run": "20261121T034800Z-quick",
        "plan": PlanRef(name="quick", sha256="0", seed=1234, trials=3),
        "environment": {"stack": "local", "cpu_model": "Xeon", "cpu_count": 2},
    }
    return run_summary(*cells, **{**bare, **fields})


def test_reasons_that_differ_only_in_their_numbers_are_said_once() -> None:
    stalls = [because(f"no progress for {seconds} s", ReasonCode.NO_PROGRESS) for seconds in (30, 31, 32)]
    reasons = [because("connect-1 died"), *stalls, because("it slept", ReasonCode.UNKNOWN)]
    text = render(summary(cell("a/b", reasons=reasons, passed=False, verdict="invalid: connect-1 died")))
    assert "a/b: invalid: connect-1 died\na/b: no progress for 30 s\na/b: it slept\n" in text


def test_lost_and_duplicated_records_are_loud() -> None:
    lossy = Audit(produced=5000, stored=3770, lost=1234, duplicates=4)
    faults = [because("LOST 1,234", ReasonCode.LOST), because("DUPLICATED 4", ReasonCode.DUPLICATED)]
    text = render(summary(cell("a/b", 5, audit=lossy, passed=False, faults=faults, verdict="LOST 1,234; DUPLICATED 4")))
    assert next(line for line in text.splitlines() if line.startswith("a/b")).split()[-3:] == ["1,234", "4", "LOST"]
    assert " DUPLICATED\n" in text
    assert "a/b: LOST 1,234; DUPLICATED 4\n" in text


def test_connections_that_others_hid_are_not_known_and_say_so() -> None:
    text = render(summary(cell("postgres/jdbc", 1_000, 2_000, connections=Connections(others=2))))
    assert "not known:" in text
    assert "2 others" in text


def test_next_to_a_zero_stands_how_many_trials_were_not_audited() -> None:
    text = render(summary(cell("postgres/jdbc", 1_000, 2_000, not_audited=1)))
    row = [line.split() for line in text.splitlines()]
    start = next(place for place, words in enumerate(row) if words[:1] == ["postgres/jdbc"])
    assert row[start][-3:] == ["0", "0", "ok"]
    assert list(row[start + 1 : start + 4]) == [
        ["(1", "of", "3", "(1", "of", "3"],
        ["not", "not"],
        ["audited)", "audited)"],
    ]


def test_the_table_fits_its_width_and_no_number_is_cut() -> None:
    cells = [
        cell(
            f"elasticsearch/camel-index-{number}",
            *(rate * 1000 for rate in (198, 201, 207)),
            tasks=24,
            records_per_write=500.0,
            connections=Connections(clients_peak=120, server_peak=10),
            cpu_seconds_per_million={"connect": 118.2, "elasticsearch": 141.0, "kafka": 3.1},
        )
        for number in range(3)
    ]
    text = render(summary(*cells))
    assert max(map(len, next(part for part in text.split("\n\n") if "verdict\n" in part).splitlines())) <= 140
    assert (text.count("201,000"), text.count("198,000-207,000")) == (3, 3)
    assert text.count("connect:118") == 3
    assert (text.count(" ok\n"), text.count(" verdict\n")) == (3, 1)


def test_text_that_looks_like_markup_is_printed_as_it_is() -> None:
    text = render(
        summary(cell("a/b", notes=["[/bold] [red]x"], invalid=["[/y]"], passed=False, verdict="invalid: [/y]"))
    )
    assert "[/bold] [red]x" in text
    assert "invalid: [/y]" in text


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
    text = render(summary(cell("a/b", 5), scaling=[law, none]))
    assert ["a/b", "3", "3,000", "2,990", "+880"] in [line.split() for line in text.splitlines()]
    assert ["c/d", "6", "5", "-", "-"] in [line.split() for line in text.splitlines()]
    assert (
        "a/b: one task 1,020 (1,000 to 1,040) records/s, contention 0.051, coherency 0.01 (0.008 to 0.012);"
        " the rate peaks at 10 (9 to 11) tasks\n"
    ) in text
    assert "c/d: the data do not support a fit: too few\n" in text
    flat = {**law, "peak_tasks": None, "coherency": {"estimate": 0}}
    assert "no peak within the data (too few trials for an interval)" in render(summary(scaling=[flat]))
