"""What the limits of a run say of its pipelines."""

from __future__ import annotations

import pytest

from sinkbench.limits.efficiency import best, limit_line, limit_lines, stage_line, with_limits
from sinkbench.results import CellSummary, Limit, PlanRef, RatePerSecond, RunSummary
from sinkbench.table import render


def cell(label: str, rate: float | None, **fields: object) -> CellSummary:
    rates = None if rate is None else RatePerSecond(median=rate, low=rate, high=rate, values=[rate])
    bare = {
        "cell": f"{label}@3x1",
        "label": label,
        "pipeline": label,
        "sink": label.split("/")[0],
        "mode": "drain",
        "workers": 3,
        "tasks": 3,
        "tasks_per_worker": 1,
        "trials": 3,
        "records_per_second": rates,
        "passed": True,
        "verdict": "ok",
    }
    return CellSummary.model_validate({**bare, **fields})


def limit(sink: str, rate: float | None, way: str = "COPY", **fields: object) -> Limit:
    return Limit.model_validate(
        {"sink": sink, "way": way, "records_per_second": rate, "connections": 2, "batch": 1024, **fields}
    )


KAFKA = limit("kafka", 1_000_000, "consumer group", connections=3, batch=None)
CONNECT = limit("connect", 500_000, "postgres/jdbc", connections=3, batch=None)


def test_efficiency_is_the_median_rate_divided_by_the_limit_of_the_sinks_fastest_way() -> None:
    limits = [limit("postgres", 130_000, "INSERT"), limit("postgres", 200_000), limit("elasticsearch", 50_000, "bulk")]
    (found,) = with_limits([cell("postgres/jdbc", 80_000)], limits)
    assert (found.limit_records_per_second, found.efficiency) == (200_000, 0.4)


@pytest.mark.parametrize("limits", [[], [limit("postgres", None)], [limit("elasticsearch", 50_000)]])
def test_without_a_limit_of_its_sink_a_cell_has_neither_limit_nor_efficiency(limits: list[Limit]) -> None:
    (found,) = with_limits([cell("postgres/jdbc", 80_000)], limits)
    assert (found.limit_records_per_second, found.efficiency) == (None, None)


@pytest.mark.parametrize("unusable", [cell("postgres/jdbc", None), cell("postgres/jdbc", 80_000, invalid=["died"])])
def test_a_cell_without_a_rate_to_use_has_a_limit_but_no_efficiency(unusable: CellSummary) -> None:
    (found,) = with_limits([unusable], [limit("postgres", 100_000)])
    assert (found.limit_records_per_second, found.efficiency) == (100_000, None)


def test_the_best_of_what_was_not_measured_is_none() -> None:
    assert best([limit("postgres", None), limit("postgres", 0.0)], "postgres") is None


def test_the_stages_share_out_the_time_of_one_record() -> None:
    line = stage_line(cell("postgres/jdbc", 100_000), [limit("postgres", 200_000), KAFKA, CONNECT])
    assert line == (
        "postgres/jdbc@3x1: 50% of postgres's limit; of 10 us a record kafka 1.0 us (10%), connect 1.0 us (10%),"
        " postgres 5.0 us (50%), the connector 3.0 us (30%): postgres takes most"
    )


def test_a_slow_connector_takes_most() -> None:
    line = stage_line(cell("elasticsearch/camel-index", 500), [limit("elasticsearch", 100_000), KAFKA, CONNECT])
    assert line is not None
    assert line.endswith("the connector 1,988 us (99%): the connector takes most")


def test_stages_that_overlap_leave_nothing_to_the_connector() -> None:
    line = stage_line(cell("postgres/jdbc", 180_000), [limit("postgres", 200_000), KAFKA, CONNECT])
    assert line is not None
    assert line.endswith("postgres takes most; the stages overlap")
    assert "the connector" not in line


def test_where_connect_is_no_slower_than_the_plain_consumers_the_two_are_not_told_apart() -> None:
    fast = limit("connect", 2_000_000, "postgres/jdbc", connections=3)
    line = stage_line(cell("postgres/jdbc", 100_000), [limit("postgres", 200_000), KAFKA, fast])
    assert line is not None
    assert "kafka and connect 0.5 us (5.0%)" in line


def test_without_the_sinks_limit_nothing_is_said_of_the_stages() -> None:
    assert stage_line(cell("postgres/jdbc", 100_000), [KAFKA, CONNECT]) is None
    assert stage_line(cell("postgres/jdbc", None), [limit("postgres", 200_000)]) is None


@pytest.mark.parametrize(
    ("measured", "says"),
    [
        (limit("postgres", 163_000.4), "limit of postgres: 163,000 records/s by COPY of 1,024 rows over 2 connections"),
        (
            limit("elasticsearch", 9_000, "bulk", connections=1),
            "limit of elasticsearch: 9,000 records/s by bulk of 1,024 documents over 1 connection",
        ),
        (KAFKA, "limit of kafka: 1,000,000 records/s by a plain consumer group of 3"),
        (CONNECT, "limit of connect: 500,000 records/s by 3 tasks of postgres/jdbc that drop every record"),
        (
            Limit(sink="postgres", way="COPY", note="permission denied"),
            "limit of postgres by COPY: not measured: permission denied",
        ),
    ],
)
def test_a_limit_is_told_in_one_line(measured: Limit, says: str) -> None:
    assert limit_line(measured) == says


def run(limits: list[Limit]) -> RunSummary:
    cells = with_limits([cell("postgres/jdbc", 100_000), cell("elasticsearch/camel-bulk", 9_000)], limits)
    return RunSummary(run="r", complete=True, plan=PlanRef(name="p", sha256="0"), cells=cells, limits=limits)


def test_the_table_shows_the_share_of_the_limit_and_the_limits_below() -> None:
    text = render(run([limit("postgres", 200_000), limit("elasticsearch", None, "bulk", note="429")]))
    assert " limit " in "".join(text.splitlines()[2:6])
    assert " 50% " in next(line for line in text.splitlines() if line.startswith("postgres/jdbc "))
    assert "limit of postgres: 200,000 records/s by COPY" in text
    assert "limit of elasticsearch by bulk: not measured: 429" in text


def test_a_run_without_limits_says_nothing_of_them() -> None:
    assert limit_lines(run([])) == []
    assert "limit" not in render(run([]))
