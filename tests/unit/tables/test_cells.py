"""The table: what a reader of a run sees."""

from __future__ import annotations

import io

import pytest

from sinkbench.errors import ReasonCode
from sinkbench.results import Audit, Bloat, CellSummary, Connections, PlanRef, Pool, Reason, RunSummary
from sinkbench.tables.cells import render, show
from tests.support.reasons import because
from tests.support.trials import CLEAN, cell_summary, run_summary

TOO_MANY = "FATAL: sorry, too many clients already"


def cell(label: str, *rates: float, **fields: object) -> CellSummary:
    return cell_summary(label, *rates, **{"trials": 3, "audit": CLEAN, **fields})  # type: ignore[arg-type]


def summary(*cells: CellSummary, **fields: object) -> RunSummary:
    bare = {
        "run": "20261121T034800Z-quick",
        "plan": PlanRef(name="quick", sha256="0", seed=1234, trials=3),
        "environment": {"stack": "local", "cpu_model": "Xeon", "cpu_count": 2},
    }
    return run_summary(*cells, **{**bare, **fields})


def line_of(text: str, start: str) -> list[str]:
    return next(line for line in text.splitlines() if line.startswith(start)).split()


def test_a_row_has_rate_span_ratio_cost_and_verdict() -> None:
    fast = cell(
        "postgres/jdbc-pgbouncer",
        29_800,
        31_200,
        32_900,
        records_per_write=487.2,
        connections=Connections(clients_peak=120, server_peak=10),
        cpu_seconds_per_million={"connect": 6.24, "postgres": 12.6, "kafka": 0.01, "pgbouncer": None},
    )
    text = render(summary(cell("elasticsearch/camel-index", 2_000, 2_200, 2_100), fast))
    assert line_of(text, "postgres/jdbc-pgbouncer") == [
        "postgres/jdbc-pgbouncer",
        "3",
        "(1)",
        "31,200",
        "29,800-32,900",
        "x14.9",
        "487",
        "120/10",
        "pg:13",
        "connect:6.2",
        "0",
        "0",
        "ok",
    ]


def test_what_was_not_measured_is_a_dash() -> None:
    row = line_of(render(summary(cell("postgres/jdbc", 5, audit=None))), "postgres/jdbc")
    assert row == ["postgres/jdbc", "3", "(1)", "5", "-", "x1.0", "-", "-", "-", "-", "-", "ok"]


def test_above_the_table_is_which_run_it_was_and_what_on() -> None:
    lines = render(summary()).splitlines()
    assert lines[0] == "run 20261121T034800Z-quick"
    assert lines[1] == "plan quick, trials 3, seed 1234, stack local, machine Xeon, 2 cores"
    assert render(summary(complete=False)).startswith("run 20261121T034800Z-quick (not finished)\n")
    assert render(summary(environment={})).splitlines()[1] == "plan quick, trials 3, seed 1234"


def test_an_invalid_cell_shows_its_reason_and_no_rate() -> None:
    text = render(
        summary(
            cell(
                "postgres/jdbc",
                5,
                invalid=["redis fell over", "so did we"],
                passed=False,
                verdict="invalid: redis fell over",
            )
        )
    )
    assert line_of(text, "postgres/jdbc")[3:6] == ["-", "-", "-"]
    assert line_of(text, "postgres/jdbc")[-1] == "invalid"
    assert "postgres/jdbc: invalid: redis fell over\n" in text
    assert "postgres/jdbc: so did we\n" in text


def test_reasons_that_differ_only_in_their_numbers_are_said_once() -> None:
    stalls = [because(f"no progress for {seconds} s", ReasonCode.NO_PROGRESS) for seconds in (30, 31, 32)]
    reasons = [because("connect-1 died"), *stalls, because("it slept", ReasonCode.UNKNOWN)]
    text = render(summary(cell("a/b", reasons=reasons, passed=False, verdict="invalid: connect-1 died")))
    assert "a/b: invalid: connect-1 died\na/b: no progress for 30 s (and 2 more like it)\na/b: it slept\n" in text


def test_failed_tasks_are_counted_with_their_cause_below_the_table() -> None:
    failed = cell(
        "postgres/jdbc",
        tasks=24,
        failed_tasks=16,
        failure=TOO_MANY,
        invalid=["16 of 24 tasks FAILED"],
        passed=False,
        verdict=f"16 of 24 tasks FAILED: {TOO_MANY}",
    )
    text = render(summary(cell("postgres/jdbc", 5), failed))
    assert line_of(text, "postgres/jdbc ")[-1] == "ok"
    assert f"postgres/jdbc with 24 tasks: 16 of 24 tasks FAILED: {TOO_MANY}\n" in text
    assert " FAILED\n" in text


def test_lost_and_duplicated_records_are_loud() -> None:
    lossy = Audit(produced=5000, stored=3770, lost=1234, duplicates=4)
    faults = [because("LOST 1,234", ReasonCode.LOST), because("DUPLICATED 4", ReasonCode.DUPLICATED)]
    text = render(summary(cell("a/b", 5, audit=lossy, passed=False, faults=faults, verdict="LOST 1,234; DUPLICATED 4")))
    assert line_of(text, "a/b")[-3:] == ["1,234", "4", "LOST"]
    assert " DUPLICATED\n" in text
    assert "a/b: LOST 1,234; DUPLICATED 4\n" in text


def test_connections_that_others_hid_are_not_known_and_say_so() -> None:
    text = render(summary(cell("postgres/jdbc", 1_000, 2_000, connections=Connections(others=2))))
    assert "not known:" in text
    assert "2 others" in text


def test_who_else_was_there_stands_below_the_table() -> None:
    text = render(summary(cell("postgres/jdbc", 1_000), environment={"also_there": ["connector by-hand (3 tasks)"]}))
    assert "Also there when the run began: connector by-hand (3 tasks)." in text


def test_beside_a_zero_stands_how_many_trials_were_not_audited() -> None:
    text = render(summary(cell("postgres/jdbc", 1_000, 2_000, not_audited=1)))
    row = [line.split() for line in text.splitlines()]
    start = next(place for place, words in enumerate(row) if words[:1] == ["postgres/jdbc"])
    assert row[start][-3:] == ["0", "0", "ok"]
    assert list(row[start + 1 : start + 4]) == [
        ["(1", "of", "3", "(1", "of", "3"],
        ["not", "not"],
        ["audited)", "audited)"],
    ]


def test_a_note_is_marked_with_a_star_and_given_below() -> None:
    text = render(summary(cell("a/b", 5, notes=["1 of 3 trials invalid: killed"])))
    assert line_of(text, "a/b")[-2:] == ["ok", "*"]
    assert "* a/b: 1 of 3 trials invalid: killed\n" in text


@pytest.mark.parametrize("width", [80, 100, 120, 132, 140])
def test_the_table_fits_its_width_and_no_number_is_cut(width: int) -> None:
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
    text = render(summary(*cells), width)
    rows = text.split("\n\n")[1].splitlines()
    assert max(map(len, rows)) <= width
    assert text.count("201,000") == 3
    assert text.count("198,000-207,000") == 3
    assert text.count("connect:118") == (3 if width >= 100 else 0)
    assert ("CPU seconds are shown from 100 columns" in text) == (width < 100)
    assert text.count(" ok\n") == 3
    assert text.count(" verdict\n") == 1


def test_text_that_looks_like_markup_is_printed_as_it_is() -> None:
    text = render(
        summary(cell("a/b", notes=["[/bold] [red]x"], invalid=["[/y]"], passed=False, verdict="invalid: [/y]"))
    )
    assert "[/bold] [red]x" in text
    assert "invalid: [/y]" in text


def test_into_a_pipe_there_is_no_colour_and_letters_it_lacks_are_replaced() -> None:
    plain = io.StringIO()
    show(summary(cell("a/b", 5)), plain)
    assert "\x1b" not in plain.getvalue()
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    show(summary(cell("a/\N{GREEK SMALL LETTER BETA}", 5)), ascii_only)
    ascii_only.seek(0)
    assert "a/?" in ascii_only.read()


RATE = {"median": 100, "low": 90, "high": 130, "values": [90, 95, 100, 105, 130]}


def sure(low: float, high: float) -> dict[str, object]:
    return {"low": low, "high": high, "confidence": 0.95, "method": "m", "blocks": 5}


def compared(low: float, high: float) -> list[CellSummary]:
    slow = cell("a/b", records_per_second={**RATE, "interval": sure(92, 118)})
    ratio = {"to": slow.cell, "estimate": 171.7, "blocks": 5, "interval": sure(low, high)}
    fast = {"median": 17_000, "low": 1, "high": 2, "values": [1, 2], "interval": sure(15_000, 19_000)}
    return [slow, cell("c/d", records_per_second=fast, ratio=ratio)]


def test_an_interval_stands_in_place_of_the_span() -> None:
    text = render(summary(*compared(150.2, 190.4)))
    assert line_of(text, "a/b")[4] == "92-118"
    assert line_of(text, "c/d")[4:6] == ["15,000-19,000", "x172"]
    assert "min-max" not in text
    assert "too few trials" not in text


def test_too_few_trials_for_an_interval_show_their_span_and_say_so() -> None:
    said = "too few trials for an interval"
    assert said in render(summary(cell("a/b", 90, 100, 120)))
    mixed = render(summary(*compared(150, 190), cell("e/f", 900, 1_000, 1_200)))
    assert line_of(mixed, "e/f")[4] == "(900-1,200)"
    assert f"In brackets are its lowest and highest trial: {said}." in mixed


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


def test_a_cell_that_is_not_warm_shows_what_it_surely_reaches_and_is_in_no_ratio() -> None:
    reason = Reason(code=ReasonCode.NOT_WARM, text="still warming: x", figures={"records_per_second": 476})
    cold = cell("elasticsearch/camel-index", 229, 343, 476, at_least=reason)
    text = render(summary(cold, cell("postgres/jdbc", 60_000, 61_000)))
    row = next(line for line in text.splitlines() if line.startswith("elasticsearch/camel-index"))
    assert "at least 476" in row
    assert "343" not in row
    assert row.endswith("warming")
    assert "elasticsearch/camel-index: at least 476 records/s, still warming: x" in text
    assert line_of(text, "postgres/jdbc")[5] == "x1.0"


def test_a_foreign_load_is_named_from_a_tenth_of_the_machine_on() -> None:
    said = "postgres/jdbc: up to 0.5 cores were busy with what is no part of the stack (0.1 of them stolen"
    busy = cell("postgres/jdbc", 5, 6, foreign_cores=0.5, stolen_cores=0.1)
    assert said in render(summary(busy))
    assert "no part of the stack" not in render(summary(cell("postgres/jdbc", 5, 6, foreign_cores=0.2)))
    assert "no part of the stack" not in render(summary(busy, environment={}))


def test_a_cell_of_one_trial_shows_no_span() -> None:
    text = render(summary(cell("postgres/jdbc", 16_904)))
    assert line_of(text, "postgres/jdbc")[3:5] == ["16,904", "-"]
    assert "lowest and highest" not in text


def test_what_jvms_spend_on_themselves_is_shown_as_shares() -> None:
    jvms = {"kafka": {"compiler": 1.0, "gc": 0.2}, "connect": {"compiler": 1.0, "gc": None}}
    used = {"kafka": 10, "connect": 10}
    warm = cell(
        "postgres/jdbc",
        5,
        6,
        jvm_cpu_seconds_per_million=jvms,
        cpu_seconds_per_million=used,
        compiling_share=0.1,
        total_cpu_seconds_per_million={"median": 20, "low": 20, "high": 20, "values": [20]},
    )
    text = render(summary(warm, cell("a/b", 5, 6)))
    assert "10% 1.0%" in " ".join(line_of(text, "postgres/jdbc")).replace(" %", "%")
    assert "JIT" in text
    assert "JIT" not in render(summary(cell("a/b", 5, 6)))


def test_what_changes_of_keys_have_left_has_a_table_of_its_own() -> None:
    by_key = Audit(produced=100, stored=40, lost=0, duplicates=0, superseded=60, stale=0, missing=0, not_deleted=0)
    bloat = Bloat(dead_rows=12_345, deadlocks=0, bytes_before=20_000_000, bytes_after=240_000_000)
    text = render(summary(cell("postgres/jdbc-upsert", 1_000, audit=by_key, bloat=bloat), cell("postgres/jdbc", 900)))
    below = text[text.index("changes") :]
    expected = ["postgres/jdbc-upsert", "3", "0", "0", "0", "0", "-", "12,345", "20.0", "240"]
    assert line_of(below, "postgres/jdbc-upsert") == expected
    assert "stale" not in render(summary(cell("postgres/jdbc", 900)))


def test_what_connectors_waited_for_in_the_pool_has_a_table_of_its_own() -> None:
    pool = Pool(
        mode="transaction",
        size=10,
        prepared_statements=0,
        most_waiting=1_005,
        longest_wait_ms=512.3,
        wait_ms_per_transaction=0.25,
    )
    pooled = cell("postgres/jdbc-pgbouncer", 900, pool=pool, connections=Connections(clients_peak=120, server_peak=10))
    text = render(summary(pooled, cell("postgres/jdbc", 1_000)))
    below = text[text.index("pooler") :]
    expected = ["postgres/jdbc-pgbouncer", "3", "transaction", "10", "0", "10", "1,005", "512", "-", "0.25"]
    assert line_of(below, "postgres/jdbc-pgbouncer") == expected
    assert "pooler" not in render(summary(cell("postgres/jdbc", 900)))
