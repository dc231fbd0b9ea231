"""Query results after a load, and query times during one."""

from collections.abc import Iterable, Sequence

from sinkbench.analysis.latency import merged
from sinkbench.analysis.rates import median_known
from sinkbench.analysis.words import milliseconds, significant, whole
from sinkbench.metrics.metric import Fields, Metric, column
from sinkbench.metrics.taken import Taken
from sinkbench.results import Asked, CellSummary, Reads

READS = "reads"


def job_of(cell: CellSummary) -> frozenset[str] | None:
    """The queries that a cell answers correctly using an index; None if none was asked, or that is unknown."""
    return _job(cell.queries)


def _job(queries: Sequence[Asked]) -> frozenset[str] | None:
    answers = [each for each in queries if not each.problem]
    if not queries or any(each.right is None or each.by_index is None for each in answers):
        return None
    return frozenset(each.query for each in answers if each.right and each.by_index)


def same_job(taken: Taken) -> list[Taken]:
    """The cells of the run that do the job of this one, itself among them: those that answer the same queries. If no
    cell was asked, those of the same sink whose index or table is the same."""
    asked = {key: queries_of(each) for key, each in taken.run.items()}
    jobs: dict[str, object] = {key: _job(each) for key, each in asked.items()}
    if not any(asked.values()):
        jobs = {key: (each.cell.sink, each.cell.target, each.cell.form) for key, each in taken.run.items()}
    own = jobs[taken.cell.key]
    return [each for key, each in taken.run.items() if own is not None and jobs[key] == own]


def queries_of(taken: Taken) -> list[Asked]:
    """The outcome of each query over the trials that asked it: wrong in one trial is wrong."""
    by_query: dict[str, list[tuple[Asked, int | None]]] = {}
    for trial in taken.valid:
        for each in trial.queries:
            by_query.setdefault(each.query, []).append((each, None if trial.audit is None else trial.audit.stored))
    return [_merged(name, *zip(*found, strict=True)) for name, found in by_query.items()]


def _merged(query: str, asked: Sequence[Asked], stored: Sequence[int | None]) -> Asked:
    rows = median_known(each.rows or count for each, count in zip(asked, stored, strict=True))
    return Asked(
        query=query,
        right=_as_known(each.right for each in asked),
        by_index=_as_known(each.by_index for each in asked),
        found=asked[-1].found,
        milliseconds=median_known(each.milliseconds for each in asked),
        rows=None if rows is None else round(rows),
        problem=next((each.problem for each in asked if each.problem), ""),
    )


def _as_known(values: Iterable[bool | None]) -> bool | None:
    found = set(values)
    return False if False in found else True if True in found else None


def _reads(taken: Taken) -> Fields:
    if not (reads := [trial.reads for trial in taken.valid if trial.reads is not None]):
        return {}
    found = Reads(
        loaded_ms=merged(each.loaded_ms for each in reads),
        idle_ms=merged(each.idle_ms for each in reads),
        failed=sum(each.failed for each in reads),
        problem=next((each.problem for each in reads if each.problem), ""),
        unasked=sum(each.unasked for each in reads),
    )
    return {"reads": found}


METRICS = (
    Metric("Equal jobs", of_cell=lambda taken: {"queries": queries_of(taken)}),
    Metric(
        "Queries during a load",
        of_cell=_reads,
        columns=[
            column(READS, 10, "offered\nrecords/s", "offered_records_per_second", whole),
            column(
                READS, 20, "queries/s", "reads_per_second", lambda rate: "none" if rate is None else significant(rate)
            ),
            column(READS, 30, "query\np50 ms\nidle", "reads.idle_ms.p50", milliseconds),
            column(READS, 40, "p50 ms\nloaded", "reads.loaded_ms.p50", milliseconds),
            column(READS, 50, "p99 ms\nidle", "reads.idle_ms.p99", milliseconds),
            column(READS, 60, "p99 ms\nloaded", "reads.loaded_ms.p99", milliseconds),
            column(READS, 70, "failed", "reads.failed"),
            column(READS, 80, "record\np99 ms", "latency_ms.p99", milliseconds),
            column(READS, 90, "CPU s per\nmillion\nrecords", "total_cpu_seconds_per_million.median", whole),
        ],
    ),
)
