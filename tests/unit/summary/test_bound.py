"""What a pipeline's CPU time leaves it to gain of its sink's limit."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.errors import ReasonCode
from sinkbench.metrics.bound import Bound, bound_of, cpu_bound
from sinkbench.report.parts import of_rich
from sinkbench.results import CellSummary, Limit, Reason, RunSummary
from sinkbench.tables.cells import render
from sinkbench.tables.stages import bound_table
from tests.support.present import present
from tests.support.trials import cell_summary, run_summary, with_limits

JDBC = "postgres/jdbc"
LOCAL = {"stack": "local", "cpu_count": 2}
CPU = st.floats(0.1, 10_000)


def cell(rate: float = 64_000, total: float | None = 20.0, **fields: object) -> CellSummary:
    spread = None if total is None else {"median": total, "low": total, "high": total, "values": [total]}
    used = {"connect": 12.0, "postgres": 7.0, "kafka": 1.0, "controller": 90.0}
    return cell_summary(
        JDBC, rate, **{"total_cpu_seconds_per_million": spread, "cpu_seconds_per_million": used, **fields}
    )


def run(*cells: CellSummary, cpu: dict[str, float | None] | None = None, **environment: object) -> RunSummary:
    """A run whose limits of PostgreSQL are 100,000 records/s by COPY, which takes `cpu`, and less by INSERT."""
    how: dict[str, Any] = {"sink": "postgres", "batch": 1_024, "connections": 2}
    limits = [
        Limit(**how, way="INSERT", records_per_second=50_000, cpu_seconds_per_million={"client": 99.0}),
        Limit(**how, way="COPY", records_per_second=100_000, cpu_seconds_per_million=cpu or {}),
    ]
    return run_summary(*with_limits(cells, limits), limits=limits, environment={**LOCAL, **environment})


def found(summary: RunSummary) -> Bound:
    return present(bound_of(summary.cells[0], summary))


@pytest.mark.parametrize(
    ("times", "share"), [((14.2, 20.0), 0.71), ((30.0, 20.0), 1.5), ((0.0, 20.0), None), ((14.0, 0.0), None)]
)
def test_a_pipeline_has_the_share_of_the_limit_that_the_cores_can_carry(
    times: tuple[float, float], share: float | None
) -> None:
    assert cpu_bound(*times) == (share if share is None else pytest.approx(share))


@pytest.mark.parametrize(
    ("cpu", "known"),
    [
        ({}, None),
        ({"postgres": 12.0, "client": 7.0, "controller": 50.0}, 19.0),
        ({"postgres": 19.0, "client": None}, None),
        ({"controller": 19.0}, None),
    ],
)
def test_what_the_limit_takes_of_the_cores_is_kept_and_decides_nothing(
    cpu: dict[str, float | None], known: float | None
) -> None:
    # At 100,000 records/s two cores have 20 s to give for a million records.
    bound = found(run(cell(total=25.0), cpu=cpu))
    assert (bound.cores_cpu, bound.limit_cpu, bound.share) == (20.0, known, 0.8)
    assert (bound.left, bound.dearest, bound.dearest_cpu) == (pytest.approx(0.16), "connect", 12.0)


@pytest.mark.parametrize("client", [7.0, None])
def test_a_pipeline_that_reached_more_than_its_cpu_time_allows_is_bounded_by_what_it_reached(
    client: float | None,
) -> None:
    bound = found(run(cell(rate=82_000, total=25.0), cpu={"postgres": 12.0, "client": client}))
    assert (bound.efficiency, bound.share, bound.left) == (0.82, 0.82, 0.0)


def test_a_container_has_the_cores_that_it_is_given() -> None:
    assert found(run(cell(), cpu_count=64, container={"kind": "docker", "cpus": 2.0})).cores_cpu == 20.0
    assert found(run(cell(), container={"kind": "none", "cpus": "no limit"})).cores_cpu == 20.0
    # There the services have containers of their own.
    given_less = run(cell(), stack="compose", container={"kind": "docker", "cpus": 0.5})
    assert found(given_less).cores_cpu == 20.0


@pytest.mark.parametrize(
    "unbounded",
    [
        run(cell(), stack="external"),
        run(cell(), cpu_count=None),
        run(cell(total=None)),
        run(cell(cpu_seconds_per_million={})),
        run(cell(mode="sustain")),
        run(cell(invalid=["died"])),
        run(cell(passed=False, verdict="3 records LOST")),
        # As a run has kept it that was summed up by an earlier sinkbench.
        run(cell(rescale={"tasks_before": 1}, efficiency=0.64, limit_records_per_second=100_000)),
        run(cell(rescale={"tasks_before": 1})),
        run(cell(at_least=Reason(code=ReasonCode.NOT_WARM, text="x", figures={"records_per_second": 5}))),
        run_summary(cell(), environment=LOCAL),
    ],
)
def test_there_is_no_bound_where_cores_are_not_shared_or_a_figure_is_missing(unbounded: RunSummary) -> None:
    assert bound_of(unbounded.cells[0], unbounded) is None
    assert bound_table(unbounded) is None


@given(cores=st.integers(1, 128), limit=CPU, pipeline=CPU, limit_busy=st.floats(0.01, 1), busy=st.floats(0.01, 1))
def test_no_pipeline_that_the_cores_can_carry_exceeds_its_bound(
    cores: int, limit: float, pipeline: float, limit_busy: float, busy: float
) -> None:
    limits = [
        Limit(
            sink="postgres",
            way="COPY",
            records_per_second=limit_busy * cores * 1e6 / limit,
            cpu_seconds_per_million={"client": limit},
        )
    ]
    rated = with_limits([cell(busy * cores * 1e6 / pipeline, total=pipeline)], limits)
    bound = found(run_summary(*rated, limits=limits, environment={"stack": "local", "cpu_count": cores}))
    assert bound.efficiency <= bound.share
    assert 0 <= bound.left <= 1
    # It is what the cores can carry, and more only where rounding an efficiency to four digits made it so.
    assert bound.share == pytest.approx(limit / pipeline / limit_busy, rel=1e-9, abs=0.000_1)


def test_it_is_said_with_the_efficiency_in_the_terminal_and_in_the_report() -> None:
    summary = run(cell(total=25.0), cpu={"postgres": 12.0, "client": 7.0})
    table = of_rich(present(bound_table(summary)), "")
    assert table.rows == [(JDBC, "64 %", "80 %", "16 %", "20", "25", "connect, 12")]
    assert table.meanings["CPU bounds it to"] == "CPU bound"
    assert "connect, 12" in render(summary)


def test_a_pipeline_that_takes_less_than_the_limit_is_not_bounded_by_its_cpu_time() -> None:
    summary = run(cell(total=10.0))
    assert found(summary).left == pytest.approx(0.36)
