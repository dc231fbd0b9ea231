"""The first screen of a report: what it shows of cells that may be quoted and of others, and what is missing."""

import re

import pytest

from sinkbench.errors import ReasonCode
from sinkbench.report.missing import missing
from sinkbench.report.overview import MOST_CELLS, cells_shown, opening
from sinkbench.report.parts import Figure, Lines, Opening
from sinkbench.results import CellSummary, Limit, Reason
from tests.support.present import present
from tests.support.trials import cell_summary, run_summary

INDEX, BULK, JDBC = "elasticsearch/camel-index", "elasticsearch/camel-bulk", "postgres/jdbc"
CPU = {"cpu_seconds_per_million": {"connect": 10.0, "kafka": 1.0}, "compiling_share": 0.02}


def cell(label: str, *rates: float, **fields: object) -> CellSummary:
    """A cell that lacks nothing."""
    return cell_summary(label, *rates, **{**CPU, **fields})  # type: ignore[arg-type]


def unready(label: str, rate: float, code: ReasonCode = ReasonCode.NOT_WARM) -> CellSummary:
    reason = Reason(code=code, text="still warming: it compiled", figures={"records_per_second": rate})
    return cell(label, at_least=reason)


def said(*cells: CellSummary, **fields: object) -> list[str]:
    """The lines about what is missing."""
    parts = missing(run_summary(*cells, **fields))
    assert all(isinstance(part, Lines) for part in parts)
    return [line for part in parts if isinstance(part, Lines) for line in part.lines]


def figure_of(found: Opening, key: str) -> Figure:
    (section,) = [each for each in found.sections if each.key == key]
    (part,) = section.parts
    assert isinstance(part, Figure)
    return part


def test_rates_and_costs_of_all_cells_are_shown_with_the_answer() -> None:
    found = opening(run_summary(cell(BULK, 20_000, 21_000), cell(JDBC, 60_000, 64_000)))
    assert [section.key for section in found.sections] == ["rates", "costs"]
    assert found.lead[0].endswith(
        f"in records/s: {BULK} 21,000 and {JDBC} 64,000. To decide: `queries: queries` in the plan."
    )
    for key in ("rates", "costs"):
        assert [row[0] for row in figure_of(found, key).table.rows] == [BULK, JDBC]
    assert len(cells_shown(run_summary(*[cell(f"a/{place}", 5) for place in range(MOST_CELLS + 1)]))) == MOST_CELLS


def test_a_cell_that_is_not_warm_is_at_least_in_the_picture_in_its_numbers_and_in_words() -> None:
    found = opening(run_summary(unready(INDEX, 476), cell(BULK, 20_000, 21_000), cell(JDBC, 60_000, 64_000)))
    rates, costs = figure_of(found, "rates"), figure_of(found, "costs")
    assert rates.table.rows[0][2:5] == ("at least 476", "-", "-")
    assert f"{INDEX} at least 476" in rates.charts[0].label
    drawn = re.findall(r">([^<>]+)</text>", rates.charts[0].svg)
    assert {"at least 476", "at least: not warm, or not steady"} <= set(drawn)
    assert "at least as much" in rates.caption
    assert costs.table.rows[0][0] == f"{INDEX} (warming)"
    assert [section.key for section in found.sections] == ["missing", "rates", "costs"]
    assert found.lead[0].startswith("Elasticsearch or PostgreSQL: NOT DECIDED, no queries were asked")


def test_sinkbenchs_own_cpu_time_is_in_no_sum_but_in_the_numbers() -> None:
    used = {"connect": 10.0, "kafka": 1.0, "controller": 90.0}
    interval = {"low": 10.5, "high": 12.0, "confidence": 0.95, "method": "m", "blocks": 5}
    total = {"median": 11.2, "low": 10.0, "high": 13.0, "values": [11.2], "interval": interval}
    seen = cell(JDBC, 60_000, cpu_seconds_per_million=used, total_cpu_seconds_per_million=total)
    earlier = cell(BULK, 20_000, cpu_seconds_per_million=used)
    costs = figure_of(opening(run_summary(seen, earlier)), "costs")
    assert costs.table.headers == ("cell", "connect", "kafka", "all", "95 % interval", "controller")
    assert costs.table.rows == [(JDBC, "10", "1.0", "11", "10-12", "90"), (BULK, "10", "1.0", "-", "-", "90")]
    assert "controller" not in costs.charts[0].svg


def test_a_run_with_nothing_valid_has_words_alone() -> None:
    bad = [cell_summary(label, invalid=["died"]) for label in (BULK, JDBC)]
    found = opening(run_summary(*bad))
    assert found.lead == ["No answer: 2 of 2 cells may not be compared."]
    assert [section.key for section in found.sections] == ["missing"]
    assert said(*bad) == [f"{BULK}: invalid: died", f"{JDBC}: invalid: died"]


def test_of_many_cells_the_fastest_of_each_pipeline_is_shown_and_only_for_want_of_it_one_that_is_not_warm() -> None:
    tasks = range(3, 3 * (MOST_CELLS + 2), 3)
    many = [cell(JDBC, 1_000 + each % 9, tasks=each) for each in tasks]
    cold = [unready(INDEX, 9_999), unready(BULK, 99_999).model_copy(update={"label": JDBC})]
    lossy = cell(JDBC, 99_999, tasks=3, passed=False, verdict="LOST 1")
    summary = run_summary(*many, *cold, lossy)
    assert [each.label for each in cells_shown(summary)] == [JDBC, INDEX]
    assert present(cells_shown(summary)[0].records_per_second).median == 1_006
    titles = [section.title for section in opening(summary).pictures]
    assert titles == ["Rates, of each pipeline the fastest", "Their CPU time"]


def test_what_helps_several_cells_is_said_once() -> None:
    cells = [unready(INDEX, 1), unready(BULK, 2), unready(JDBC, 3, ReasonCode.NOT_STEADY)]
    lines = said(*cells)
    assert [line.partition(":")[0] for line in lines] == [INDEX, BULK, "To have them", JDBC, "To have it"]
    assert lines[0] == f"{INDEX}: at least 1 records/s, warming"


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"compiling_share": None}, "whether the JVMs were warm: not known"),
        ({"cpu_seconds_per_million": {}}, "CPU time: not known"),
        ({"cpu_seconds_per_million": {"connect": 1.0, "kafka": None}}, "CPU time of kafka: not known"),
    ],
)
def test_figures_that_are_not_known_are_named_with_their_cells_if_others_have_them(
    fields: dict[str, object], line: str
) -> None:
    assert said(cell(BULK, 5, **fields), cell(JDBC, 6, **fields)) == [line]
    assert said(cell(BULK, 5, **fields), cell(JDBC, 6)) == [f"{line} of {BULK}"]


def test_an_unfinished_run_and_a_limit_that_was_not_measured_are_named() -> None:
    limit = Limit(sink="postgres", way="COPY", note="permission denied")
    assert said(cell(JDBC, 6), complete=False, limits=[limit]) == [
        "trials: the run is not finished; `sinkbench resume r` goes on with it",
        "limit of postgres by COPY: not measured: permission denied",
    ]
