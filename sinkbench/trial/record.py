"""Builds the record of a trial from what its steps found. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from sinkbench.analysis.reconcile import reconcile
from sinkbench.analysis.samples import used_up
from sinkbench.analysis.stalls import Stall, silences
from sinkbench.bottleneck.evidence import Circumstances, evidence_of
from sinkbench.bottleneck.verdict import cause_of
from sinkbench.metrics import METRICS
from sinkbench.metrics.metric import fields_of
from sinkbench.metrics.seen import Seen
from sinkbench.results import Bottleneck, Reason, TrialRecord
from sinkbench.sinks import sink_kind
from sinkbench.trial.reasons import counts_of, failure_of, interruptions
from sinkbench.trial.values import Measured
from sinkbench.trial.workload import Figures


def record(found: Measured, figures: Figures, reasons: Sequence[Reason]) -> TrialRecord:
    """Returns the record with the workload's figures; the caller fills in block, start and length."""
    audited, replication, seen = found.audited, found.audited.replication or found.before.replication, seen_of(found)
    in_the_end = [] if found.policy.judges_pipeline or audited.replication is None else audited.replication.broken
    notes = [
        *found.target.notes,
        *(f"in the end {each.text}" for each in in_the_end),
        *(f"not checked {each}" for each in replication.unchecked),
        *audited.content_notes,
        *figures.get("notes", []),
    ]
    fields = {
        **found.cell.identity(),
        **fields_of(METRICS, lambda metric: metric.of_trial(seen)),
        **figures,
        "notes": notes,
        "reasons": [*reasons, *figures.get("reasons", [])],
    }
    return TrialRecord(
        trial=found.trial,
        block=0,
        connector=found.timeline.connector,
        started_at="",
        seconds=0,
        records=found.records,
        placement=dict(found.timeline.placement or {}),
        failed_tasks=found.timeline.failed_tasks,
        failure=failure_of(found),
        others=list(found.stopped.others),
        audit=audited.audit,
        not_audited=_not_audited(found),
        queries=list(found.after.queries),
        durability=found.before.durability,
        reconciliation=counts_of(found),
        lost_ranges=audited.lost_ranges,
        duplicated_ranges=audited.duplicated_ranges,
        altered_ranges=audited.altered_ranges,
        wrong_keys=dict(audited.wrong_keys),
        bloat=found.after.bloat,
        **fields,
    )


def _not_audited(found: Measured) -> str:
    if found.audited.audit is not None or found.audited.why_not:
        return found.audited.why_not
    if not found.timeline.created:
        return "the connector was not started"
    if found.stopped.consumed is not None and (found.read_all or found.policy.audits_unread):
        return "the audit could not be finished"
    return "the connector did not come to the end of the topic"


def seen_of(found: Measured) -> Seen:
    pooling, rescaled = found.before.pooling, found.cell.before is not None
    return Seen(
        samples=found.samples,
        records=found.records,
        path={"kafka", "connect", *(service.name for service in sink_kind(found.cell.sink).services)},
        counters_go_on=found.policy.counters_go_on,
        drained=found.cell.mode == "drain" and (found.cell.probes or rescaled),
        read_all=found.read_all,
        # Deleted tasks lose their counts.
        task_metrics={} if rescaled else found.stopped.task_metrics,
        pooling={} if pooling is None else asdict(pooling),
        records_per_write=found.after.records_per_write,
        disk_bytes_per_record=found.after.disk_bytes_per_record,
        connection_limit=found.before.connection_limit,
        other_connections=(found.stopped.unattributed or 0) if found.policy.shares_sink else 0,
    )


def bottleneck(found: Measured) -> Bottleneck | None:
    kind, limit, loaded = sink_kind(found.cell.sink), found.before.connection_limit, found.loaded
    around = Circumstances(
        sink=found.cell.sink,
        mode=found.cell.mode,
        tasks=found.cell.tasks,
        failed_tasks=found.timeline.failed_tasks,
        placement=found.timeline.placement or {},
        records_per_write=found.after.records_per_write,
        offered_share=found.offered_share,
        used_connections=used_up(found.samples, limit),
        connection_limit=limit,
        partitions=None if loaded is None else loaded.partitions,
        partitions_with_records=None if loaded is None else loaded.partitions_with_records,
        machine_cores=found.machine_cores,
        cpu_limits=found.cpu_limits,
        usable_cores={each.name: each.usable_cores(found.cell.tasks) for each in kind.services if each.usable_cores},
    )
    return cause_of(evidence_of(found.samples, found.records, around, found.stopped.task_metrics), kind.rules)


def noted(found: Measured, stalled: Sequence[Stall]) -> list[str]:
    """Notes in words: counts that disagree, stalls, services that did not answer, and tasks that did not run."""
    disagreements = [] if found.audited.audit is None else [each.text for each in reconcile(counts_of(found))]
    silent = [each.in_words for each in silences(found.samples)]
    return [*disagreements, *(each.in_words for each in stalled), *silent, *interruptions(found)]
