"""A trial, and a cell over all its trials."""

from collections.abc import Iterable

from pydantic import computed_field

from loadgen.summary import ClockOffset
from sinkbench.results import figures as parts
from sinkbench.results.base import Amount, Audit, RatePerSecond, RatioTo, Reconciliation, Record, Spread, Whole


class _OfCell(Record):
    """What a trial and the summary of its cell both say: which cell it is, what it used, and why it does not count."""

    cell: str
    """The key of the cell, as `postgres/jdbc@3x2`."""
    label: str
    pipeline: str
    sink: str
    mode: str
    workers: Whole
    tasks: Whole
    tasks_per_worker: float
    overrides: dict[str, str] = {}
    target: str | None = None
    """The file that said what the index or table was like; None: the sink's own."""
    form: str = "document"
    """What its records are on the topic: a document or a row, with an envelope and a schema or without."""
    partitions: Whole | None = None
    """Of the trial's topic."""
    acks: str | None = None
    """Who had to acknowledge a record before it counted as sent."""
    arm: str | None = None
    """The arm of the plan; None of a plan without arms."""
    settings: dict[str, dict[str, str]] = {}
    """What the sink's services were set to for the time of a trial, by the service."""
    variables: dict[str, str] = {}
    """What the services' run scripts were started with, besides what all cells of the run share."""
    pool: parts.Pool | None = None
    """None of what does not go through a pooler, and where it cannot be told."""
    connector: str | None = None
    """The class of the connector, as its configuration names it; None if none was made."""
    records_per_write: Amount | None = None
    placement: dict[str, int] = {}
    failed_tasks: Whole = 0
    failure: str | None = None
    """The first line of the cause that a failed task gave."""
    connections: parts.Connections = parts.Connections()
    latency_ms: parts.LatencyMs | None = None
    """From due to stored, after the warm-up."""
    searchable_ms: parts.LatencyMs | None = None
    """From due to found by a search; None in a sink where that is when it is stored."""
    cpu_seconds_per_million: dict[str, Amount | None] = {}
    jvm_cpu_seconds_per_million: dict[str, parts.JvmCpu] = {}
    """By service; only those whose JVMs can be seen."""
    compiling_share: Amount | None = None
    """Share of the CPU time of all services that went into compiling; None if nothing tells."""
    peak_memory: dict[str, parts.Memory] = {}
    """By service, of Kafka, Connect and the cell's own sink; only those that can be seen."""
    fetched_bytes_per_record: Amount | None = None
    """Bytes that the tasks' consumers received from Kafka."""
    limit_records_per_second: Amount | None = None
    efficiency: Amount | None = None
    """The rate divided by the sink's limit."""
    bottleneck: parts.Bottleneck | None = None
    reads_per_second: Amount | None = None
    """The queries asked during the load, each second; None: none."""
    reads_from: str | None = None
    """`standby` if a standby got them; None: the primary."""
    reads: parts.Reads | None = None
    readers: Whole | None = None
    """Further consumer groups that read the topic during the load; None: none."""
    queries: list[parts.Asked] = []
    """What the index or table answered after the load; empty if nothing was asked."""
    durability: parts.Durability | None = None
    """None if it could not be read; of a cell also where its trials did not agree."""
    fault: str | None = None
    of_capacity: Amount | None = None
    """The share of the capacity found in this run that is offered; None of a rate that the plan states."""
    backlog_records: Whole | None = None
    """Under a fault, records that were in the topic before the connector started; None: they came at a rate."""
    offered_records_per_second: Amount | None = None
    """The rate at which records were offered; of a capacity, that which was confirmed. None of a drain."""
    lag: parts.Lag | None = None
    """Of a cell, of the valid trial whose lag grew most."""
    rescale: parts.Rescale | None = None
    """None of a connector that kept its tasks; of a cell, medians of the valid trials."""
    recovery: parts.Recovery | None = None
    """None if nothing was to be broken; of a cell, over the valid trials."""
    foreign_cores: Amount | None = None
    """Busy with other work, or stolen, while the trial drained; of a cell the most, as of the next three."""
    stolen_cores: Amount | None = None
    """Those of them that a hypervisor gave to other machines."""
    read_ahead_records: Whole | None = None
    """The most records at one moment that tasks had read and the sink had not stored."""
    monitoring_overhead_cores: Amount | None = None
    """Cores that sinkbench itself and the workers' metrics took while the trial drained."""
    audit: Audit | None = None
    """None without an audit; of a cell, the sum over all trials, since an invalid trial must not hide a loss."""
    bloat: parts.Bloat | None = None
    """None of a load without changes; of a cell, medians of the valid trials, and sums over all of what went wrong."""
    notes: list[str] = []
    """What a reader must know of numbers that may be used, such as counts that disagree."""
    reasons: list[parts.Reason] = []
    """Why the numbers must not be used; empty if they may be."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def invalid(self) -> list[str]:
        """The texts of `reasons`."""
        return [reason.text for reason in self.reasons]


class TrialRecord(_OfCell):
    """One trial: a line of trials.jsonl."""

    trial: str
    """The trial's id, which everything that it created was named after."""
    block: Whole
    """The number of its block, from 1; 0 for a pilot."""
    started_at: str
    seconds: Amount
    """How long the whole trial took, with its preparation and its audit."""
    records: Whole
    records_per_second: Amount | None = None
    stamped_records_per_second: Amount | None = None
    """Of a drain from 10 % to 90 % of its records, by the times that the sink keeps; None where it keeps none."""
    sent_share: Amount | None = None
    """Share of the offered records that was sent in time."""
    node_cpu_ratio: dict[str, Amount] = {}
    """The CPU time of a service's busiest node by that of its least busy one; of services with several nodes."""
    read_by_readers: list[Whole] = []
    """The records that each of the `readers` had read when all were stored."""
    loadgen_clocks: list[ClockOffset] = []
    """The clocks of load generators on other machines, by which due times of a constant load are corrected."""
    window_seconds: Amount | None = None
    """How long the drain took, from the first record to the last; the rate is that of a part of it."""
    stalled_seconds: Amount | None = None
    """How long no new record was seen in the stalls of the drain, all together; None if they were not sought."""
    total_peak_memory_bytes: Amount | None = None
    """The most that Kafka, Connect and the cell's own sink held together at one moment; None if one was not seen."""
    disk_bytes_per_record: Amount | None = None
    """What the sink's index or table took on its disk after a flush, for each stored row; None if it does not tell."""
    warm: bool | None = None
    """Whether the JVMs compiled little enough; None if that is not known."""
    steady: bool | None = None
    """Whether its throughput became steady; None if too few samples tell."""
    warm_up_seconds: Amount | None = None
    """How long it was not yet steady, which the rate leaves out; None if `steady` is not true."""
    others: list[str] = []
    """Who else was there: connectors that ran tasks on the same workers, and what was written by others meanwhile."""
    not_audited: str = ""
    lost_ranges: str = ""
    """The ranges of `seq` that were lost, as `17-516, 900`; of more than 10,000 the first, and ` and 7 more`."""
    duplicated_ranges: str = ""
    altered_ranges: str = ""
    wrong_keys: dict[str, list[str]] = {}
    """The first keys that are stale, missing or not deleted, by these words."""
    reconciliation: Reconciliation | None = None
    figures: dict[str, float] = {}
    """Figures without a field of their own, by name."""
    samples: str | None = None
    pilot: bool = False
    replaces: str | None = None
    """The id of an earlier trial of its cell that was not warm or stood still; that one then counts as a pilot."""


def settled(trials: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The trials in order, those that a later one replaces as pilots."""
    trials = list(trials)
    replaced = {trial.replaces for trial in trials}
    return [each.model_copy(update={"pilot": True}) if each.trial in replaced else each for each in trials]


class CellSummary(_OfCell):
    """One cell over all its trials: an item of `cells` in summary.json; `reasons` only if no trial is valid."""

    trials: Whole
    search: list[parts.SearchStep] = []
    records_per_second: RatePerSecond | None = None
    """Of the valid trials; None if there are none, or if no rate may be quoted (`at_least`)."""
    fastest_trial: Amount | None = None
    """The highest records per second of any of its trials, also of those that were not warm or are invalid."""
    total_cpu_seconds_per_million: Spread | None = None
    """CPU seconds of all services together for a million records, without sinkbench's own; None if one was not seen."""
    total_peak_memory_bytes: Spread | None = None
    """The most that Kafka, Connect and the cell's own sink held together at one moment; None if one was not seen."""
    disk_bytes_per_record: Spread | None = None
    """What the sink's index or table took on its disk after a flush, for each stored row."""
    cost: parts.Cost | None = None
    """By the run's prices; None without any, and if the rate may not be quoted."""
    at_least: parts.Reason | None = None
    """Why the rate may not be quoted, and is in no comparison. Its figures are the `fastest_trial` of the valid ones,
    whose CPU time, memory and disk stand here, and `records_per_second` where that is a lower bound."""
    efficiency_by_block: Spread | None = None
    """The rate divided by the limit of the same block; None where no block has both."""
    ratio: RatioTo | None = None
    """To the run's slowest cell that does the same job; None for that one itself, and where no block has both."""
    not_audited: Whole = 0
    """Trials without an audit, valid or not: what they lost is not known."""
    figures: dict[str, Spread] = {}
    """Figures without a field of their own, by name."""
    passed: bool
    """Whether the numbers may be used and everything that is checked held."""
    faults: list[parts.Reason] = []
    """What is wrong with the cell, the cause before its consequences; empty if it passed."""
    verdict: str
    """The faults in words, or why the rate must not be quoted (`at_least`), or "ok"."""
