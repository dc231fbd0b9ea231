"""What the limits of a run say of its pipelines."""

from __future__ import annotations

import pytest

from sinkbench.limits.efficiency import Stages, best, limit_line, stages_of, with_limits
from sinkbench.results import CellSummary, Limit, PlanRef, RatePerSecond, RunSummary
from sinkbench.stagetable import stage_table
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


def stages(label: str, rate: float | None, *limits: Limit) -> Stages:
    found = stages_of(cell(label, rate), limits)
    assert found is not None
    return found


def test_the_stages_share_out_the_time_of_one_record() -> None:
    found = stages("postgres/jdbc", 100_000, limit("postgres", 200_000), KAFKA, CONNECT)
    assert found.before == pytest.approx({"kafka": 1.0, "connect": 1.0})
    assert (found.whole, found.sink, found.connector) == pytest.approx((10.0, 5.0, 3.0))
    assert found.most == "sink"


def test_a_slow_connector_takes_most() -> None:
    found = stages("elasticsearch/camel-index", 500, limit("elasticsearch", 100_000), KAFKA, CONNECT)
    assert found.connector == pytest.approx(1_988)
    assert found.most == "connector"


def test_stages_that_overlap_leave_nothing_to_the_connector() -> None:
    found = stages("postgres/jdbc", 180_000, limit("postgres", 200_000), KAFKA, CONNECT)
    assert (found.connector, found.most) == (None, "sink")


def test_where_connect_is_no_slower_than_the_plain_consumers_the_two_are_not_told_apart() -> None:
    fast = limit("connect", 2_000_000, "postgres/jdbc", connections=3)
    assert stages("postgres/jdbc", 100_000, limit("postgres", 200_000), KAFKA, fast).before == {
        "kafka and connect": pytest.approx(0.5)
    }


def test_without_the_sinks_limit_nothing_is_said_of_the_stages() -> None:
    assert stages_of(cell("postgres/jdbc", 100_000), [KAFKA, CONNECT]) is None
    assert stages_of(cell("postgres/jdbc", None), [limit("postgres", 200_000)]) is None


def test_of_a_cell_whose_tasks_change_nothing_is_said_of_the_stages() -> None:
    changing = cell("postgres/jdbc", 100_000, rescale={"tasks_before": 3, "asked_at_seconds": 1.0})
    assert stages_of(changing, [limit("postgres", 200_000)]) is None


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


def test_the_stages_have_a_table_of_the_cells_whose_limit_is_known() -> None:
    lines = render(run([limit("postgres", 200_000), KAFKA, CONNECT])).splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("time of one record"))
    assert lines[first - 1].split() == ["all", "kafka", "connect", "sink", "connector", "most", "is"]
    assert lines[first + 2].split() == [
        *("postgres/jdbc", "3", "10", "1.0", "(10%)", "1.0", "(10%)", "5.0", "(50%)", "3.0", "(30%)", "sink")
    ]
    assert not lines[first + 3]


def test_a_run_without_limits_says_nothing_of_them() -> None:
    assert "limit" not in render(run([]))
    assert stage_table(run([])) is None
