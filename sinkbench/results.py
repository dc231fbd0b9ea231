"""What a run leaves behind, as other programs may rely on it: the records of trials.jsonl and summary.json.

A value that was not measured is None (`null` in the files), never 0. Files of a later sinkbench may have more fields;
reading them ignores what is not known here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, computed_field, model_validator

from loadgen.dataset.facts import DatasetFacts
from sinkbench.errors import ReasonCode

__all__ = [
    "ALSO_THERE",
    "FILES",
    "RECORDS",
    "Act",
    "Asked",
    "Audit",
    "Bloat",
    "Bottleneck",
    "CellSummary",
    "Connections",
    "Cost",
    "Durability",
    "Fit",
    "Interval",
    "JvmCpu",
    "Lag",
    "LatencyMs",
    "Limit",
    "LimitInBlock",
    "LimitStep",
    "Memory",
    "Noise",
    "PlanRef",
    "Pool",
    "Prices",
    "RatePerSecond",
    "RatioTo",
    "Reads",
    "Reason",
    "Reconciliation",
    "Recovery",
    "Rescale",
    "RunSummary",
    "Scaling",
    "ScalingPoint",
    "SearchStep",
    "Spread",
    "TrialRecord",
]

ALSO_THERE = "also_there"
"""The key of an environment that lists who else was there when the run began, a line each; absent if nobody was."""

FILES = "files"
"""The key of an environment with the SHA-256 of each file that the plan names, by the file; absent if none."""

RECORDS = "records"
"""The key of an environment that tells of the user's own records, as `DatasetFacts`; absent of those of noaa."""

Whole = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]


class _Record(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        allow_inf_nan=False,
        # So that the schema tells what each field is.
        use_attribute_docstrings=True,
    )


class Audit(_Record):
    """Exact counts of records: what was produced, what the sink holds, and how the two differ.

    They reconcile, or ValidationError is raised: stored = produced - lost - dead letters + duplicates + foreign. Of a
    load of changes stored = produced - superseded - missing + not_deleted + duplicates + foreign.
    """

    produced: Whole
    stored: Whole
    lost: Whole
    duplicates: Whole
    foreign: Whole = 0
    """Rows that are none of the records produced."""
    dead_letters: Whole = 0
    """Records that are not in the sink, but in the connector's dead letter queue."""
    compared: Whole = 0
    """Records whose document was compared with what was sent: with the topic, or with the checksum that they bear; 0 if
    none could be, and of an earlier sinkbench."""
    checked: Whole | None = None
    """Those that were compared with their checksum: all that are stored, or evenly chosen ones; 0 if they bear none, as
    rows, or it could not be told; None of an earlier sinkbench."""
    altered: Whole = 0
    """Those that were compared, and lack a member that was sent, or have another value in it."""
    superseded: Whole = 0
    """Of a load of changes: records of which nothing is to be left, since they delete, or a later one of their key
    replaces or deletes what they made."""
    stale: Whole | None = None
    """Keys of which the sink holds another version than the last; None of a load without changes, as the next two."""
    missing: Whole | None = None
    """Keys that were not deleted, and are not in the sink."""
    not_deleted: Whole | None = None
    """Keys that were deleted, and are in the sink."""

    @model_validator(mode="after")
    def _reconciles(self) -> Self:
        due = self.produced - self.superseded - self.lost - self.dead_letters - (self.missing or 0)
        due += self.duplicates + (self.not_deleted or 0) + self.foreign
        if self.stored != due:
            counts = "produced - superseded - lost - dead letters - missing + duplicates + not_deleted + foreign"
            raise ValueError(f"{self.stored} rows are stored, but {counts} is {due}")
        if self.altered > self.compared:
            raise ValueError(f"{self.altered} records are altered, of {self.compared} that were compared")
        return self

    @property
    def content_unknown(self) -> bool:
        """Whether nothing of what is stored was compared with what was sent, though it should have been."""
        return self.checked == 0 and not self.compared and bool(self.stored)

    @property
    def clean(self) -> bool:
        """Whether the sink holds every record exactly once, as it was sent, and nothing else."""
        spoilt = self.lost or self.dead_letters or self.duplicates or self.foreign or self.altered
        return not spoilt and not self.wrong_keys

    @property
    def wrong_keys(self) -> int:
        """Keys that are stale, missing or not deleted."""
        return sum(count or 0 for count in (self.stale, self.missing, self.not_deleted))

    @property
    def accounted(self) -> int:
        """Rows in the sink, and records of which nothing is to be left: as many as were produced if all went well."""
        return self.stored + self.superseded


class Connections(_Record):
    """The most connections seen at once: those clients opened, and those the database server served."""

    clients_peak: Whole | None = None
    server_peak: Whole | None = None
    server_limit: Whole | None = None
    """How many the server accepts; None where it sets no limit, or it is not known."""
    others: Whole = 0
    """Connections that others opened meanwhile: they cannot be told from the connector's, and both peaks are None."""


class LatencyMs(_Record):
    """Quantiles of the latency in milliseconds; None where `count` records cannot support one."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    p999: float | None = None
    max: float | None = None
    count: Whole
    """Records in the quantiles."""
    one_in: Annotated[int, Field(ge=1)] = 1
    """One in so many records was looked at."""
    negative: Whole = 0
    """Records that were stored before they were due, by the clocks; in no quantile."""
    earliest: float | None = None
    """The longest time that one of these was stored before it was due; None if there are none, or it was not kept."""
    unknown: Whole = 0
    """Records looked at of which it is not known when they were stored; in no quantile."""
    resolution_ms: Amount | None = None
    """To within how many milliseconds the time of storing is known, of 19 in 20 records."""
    histogram: str | None = None
    """All of them in microseconds, in HdrHistogram's own encoding (V2, compressed, base64)."""


class JvmCpu(_Record):
    """CPU seconds a million records that a service's JVMs spend on themselves: part of `cpu_seconds_per_million`."""

    compiler: Amount | None = None
    gc: Amount | None = None
    """Garbage collection."""


class Memory(_Record):
    """The most memory that a service held in a trial, all workers together, in bytes."""

    resident_bytes: Amount | None = None
    """What its processes held of the machine's memory; what they share is counted once."""
    heap_bytes: Amount | None = None
    """Its JVMs' heaps in use, with garbage that is not collected yet; None of what is no JVM, or does not tell."""


class Bloat(_Record):
    """What changes of keys have left in a sink, and what went wrong meanwhile; None is what it does not tell."""

    dead_rows: Whole | None = None
    """Rows that are dead, or documents that are deleted, and still take room: when the connector was gone."""
    deadlocks: Whole | None = None
    rollbacks: Whole | None = None
    """Transactions that were rolled back: what a connector has tried, and may have tried again."""
    bytes_before: Whole | None = None
    """Of the index or table, before the connector was made."""
    bytes_after: Whole | None = None


class Pool(_Record):
    """What the clients of a pooler waited for; None is what it did not tell. Of a cell, over its valid trials."""

    mode: str | None = None
    """When a connection of the pool is given back, by the pooler's own word."""
    size: Whole | None = None
    """How many connections to the database a pool may hold."""
    prepared_statements: Whole | None = None
    """How many statements it keeps prepared for its clients on each connection; 0 if it keeps none."""
    most_waiting: Whole | None = None
    """The most clients that were seen waiting for a connection at once."""
    longest_wait_ms: Amount | None = None
    """The longest wait that was seen going on."""
    wait_ms_per_query: Amount | None = None
    """The time that clients waited, divided by the queries; a cell has the median of its trials."""
    wait_ms_per_transaction: Amount | None = None


class Prices(_Record):
    """What was paid for a core, for memory and for disk; None has no price, and is in no cost."""

    currency: str
    core_hour: Amount | None = None
    memory_gb_hour: Amount | None = None
    """Of 10^9 bytes, as of a disk."""
    disk_gb_month: Amount | None = None
    kept_months: Amount = 1.0
    """How long a record is kept on the disk."""


class Cost(_Record):
    """What a million records of a cell cost, in the currency of the run's prices."""

    per_million: Amount | None = None
    """The sum of the parts that have a price; None if one of these was not measured."""
    cpu: Amount | None = None
    memory: Amount | None = None
    disk: Amount | None = None


class Bottleneck(_Record):
    """The component that limits a cell, and what shows it."""

    component: str
    """A service, or machine, connector, topic, generator, sink; "not identified" if nothing shows what it is."""
    evidence: str
    cause: str = ""
    """What about the component, in two to four words that are the same for the same cause."""
    also: list[str] = []
    """What else was found, but follows from it or accounts for less."""


class Reconciliation(_Record):
    """Counts of the same records in the order they take, which should all be equal; None is what is not known."""

    sent: Whole | None = None
    """By the load generators."""
    acknowledged: Whole | None = None
    in_topic: Whole | None = None
    """The sum of the topic's end offsets."""
    consumed: Whole | None = None
    """The sum of the offsets that the connector's group has committed."""
    put: Whole | None = None
    """What the tasks have handed to the connector's `put`, by their own metrics."""
    stored: Whole | None = None
    """What the audit has counted."""


class Interval(_Record):
    """Where the true value lies with so much confidence (0.95: 95 %), by which method, from how many blocks."""

    low: float
    high: float
    confidence: Annotated[float, Field(gt=0, lt=1)]
    method: str
    blocks: Whole


class Lag(_Record):
    """What was in the topic and not in the sink yet, while a constant load was offered; in records."""

    verdict: Literal["bounded", "growing", "cannot tell"]
    growth_per_second: float | None = None
    interval: Interval | None = None
    """Of the growth."""
    largest: int | None = None
    last: int | None = None
    """When the last record was due."""


class SearchStep(_Record):
    """One load that the search for a capacity has offered, in its turn."""

    offered: Amount
    outcome: str
    """A verdict over the lag; "invalid" if there is none."""
    growth_per_second: float | None = None
    confirms: bool = False
    """Whether it was to confirm what the search had found."""
    problem: str | None = None
    """Why it was invalid."""


class Spread(_Record):
    """One figure of a cell's valid trials: `values` in the order they were measured in."""

    median: Amount
    low: Amount
    """The lowest of the values; the interval's own bounds are in `interval`."""
    high: Amount
    values: list[Amount]
    blocks: list[Whole] = []
    """The block of each value."""
    interval: Interval | None = None
    """Of the median; None of fewer than 5 values."""

    def by_block(self) -> dict[int, float]:
        """The values by their blocks; none of a run that was stored without these."""
        return dict(zip(self.blocks, self.values, strict=False))


class LimitStep(_Record):
    """One measurement of the search for a limit; the last that `confirms` is longer, and gives the limit."""

    batch: Whole | None = None
    connections: Whole
    records_per_second: Amount | None = None
    problem: str | None = None
    """Why there is no rate."""
    confirms: bool = False


class LimitInBlock(_Record):
    """One measurement of a limit, beside the trials of a block."""

    block: Whole
    records_per_second: Amount | None = None
    problem: str | None = None
    """Why there is no rate."""
    cpu_seconds_per_million: dict[str, Amount | None] = {}
    """While it was written: of each service, and of the plain clients as "client"; empty if that is not known."""


class Limit(_Record):
    """What a stage of the path can do alone, with the same records: an item of `limits` in summary.json."""

    sink: str
    """A sink, or what comes before it: "kafka" or "connect"."""
    way: str
    """How a plain client wrote or read; of "connect" the pipeline whose connector got none of the records."""
    records_per_second: Amount | None = None
    """The median of `in_blocks`; where there are none, what the search has found."""
    connections: Whole | None = None
    """Connections, consumers or tasks."""
    batch: Whole | None = None
    """Records a request, statement or COPY."""
    path: list[LimitStep] = []
    """All measurements of the search, in turn."""
    in_blocks: list[LimitInBlock] = []
    """Empty of a limit that is measured once."""
    spread: Spread | None = None
    """The records per second of `in_blocks`; None if there are none, or none was measured."""
    cpu_seconds_per_million: dict[str, Amount | None] = {}
    """The medians of `in_blocks`."""
    note: str | None = None
    """Why it could not be measured."""


class RatePerSecond(Spread):
    """Records per second of a cell's valid trials."""


class RatioTo(_Record):
    """How many times as fast a cell is as another, from the blocks in which both have a valid rate."""

    to: str
    """The key of the other cell."""
    estimate: Annotated[float, Field(gt=0)]
    """The median of the blocks' ratios, on the log scale."""
    blocks: Whole
    interval: Interval | None = None
    """Of the estimate; None of fewer than 5 blocks."""


class Rescale(_Record):
    """A running connector that was given another number of tasks in the middle of its drain."""

    tasks_before: Whole
    asked_at_seconds: Amount | None = None
    """When the new number was asked for, on the samples' clock; None of several trials together."""
    rebalance_seconds: Amount | None = None
    """From then until the group was stable with a member for each new task."""
    standstill_seconds: Amount | None = None
    """The longest time from then on in which nothing was stored."""
    before_records_per_second: Amount | None = None
    """The rate before; the trial's own is that after."""
    to_cold: RatioTo | None = None
    """Of the rate after to that of a cold start with as many tasks, over all trials; None of a single trial."""


class Act(_Record):
    """What a person would have had to do, since a pipeline did not recover by itself; the trial did it instead."""

    seconds: Amount
    """When, after the moment of the fault."""
    command: str
    """A request to Connect's REST interface."""


class Recovery(_Record):
    """What became of a pipeline in which something was broken on purpose. Its times count from the moment of the fault.

    Over several trials: medians of times and rates, the most of what was counted, the acts of the first trial with any.
    """

    target: str
    """What was broken: a service or worker by its name, the network to a service, or the connector; several with
    commas; empty if nothing was."""
    began_seconds: Amount | None = None
    """The moment of the fault, on the samples' clock; None of several trials together, as the next one."""
    ended_seconds: Amount | None = None
    """When it was undone, and what was broken was ready again."""
    recovered: bool = False
    """Whether in the end all records were read and no task was FAILED."""
    first_record_seconds: Amount | None = None
    """Until the first record was stored after nothing was; 0 if it never stood still, None if none came any more."""
    standstill_seconds: Amount | None = None
    """The longest time in which nothing was stored."""
    rate_seconds: Amount | None = None
    """Until the rate was as before; 0 if it never fell, None if that was not seen."""
    lag_seconds: Amount | None = None
    """Until the lag was as before; 0 if it never rose, None if that was not seen."""
    before_records_per_second: Amount | None = None
    during_records_per_second: Amount | None = None
    """From the moment of the fault until it was undone and the rate was as before."""
    after_records_per_second: Amount | None = None
    """From then on until the last record was stored."""
    failed_tasks: Whole | None = 0
    """The most tasks that were FAILED at once; None if Connect never answered."""
    failed_seconds: Amount | None = None
    """Until Connect said so; None if none was."""
    told_seconds: Amount | None = None
    """Until Connect said of any task that it did not run; None if it never did."""
    stuck_seconds: Amount | None = 0.0
    """The longest time in which nothing was stored though Connect called every task RUNNING; None without an answer."""
    late_records: Whole | None = None
    """Records that were stored more than 5 s after they were due; None if it is not known when they came."""
    latest_seconds: Amount | None = None
    """From when a record was due until it was stored, of the latest."""
    connections_before: Whole | None = None
    connections_after: Whole | None = None
    """In the end, while the connector still ran."""
    connections_left: Whole | None = None
    """When it was gone."""
    poisoned: Whole | None = None
    """Bad records that were put into the topic beside those of the load; None of another fault."""
    poison_stored: Whole | None = None
    """Those of them that the sink holds."""
    poison_dead: Whole | None = None
    """Those of them that are in the connector's dead letter queue; None if it has none. What is in neither place was
    rejected without a word, unless the pipeline did not recover."""
    dead_letters: Whole | None = None
    """Records that the connector has put into its dead letter queue; None if it has none."""
    acts: list[Act] = []
    """Empty if nobody had to do anything."""

    @property
    def is_silent(self) -> bool:
        """Whether nothing was stored any more, though all may have been read."""
        return self.rate_seconds is None and self.first_record_seconds is None


class Reason(_Record):
    """Why figures must not be used, or what is wrong with a cell: a code for programs, a text for people."""

    code: ReasonCode
    text: str
    figures: dict[str, float] = {}
    """The numbers in the text, by name."""


class Durability(_Record):
    """What is on how many nodes when a record counts as stored: by the settings that were found, and what was seen of
    nodes. What a connector loses before it writes is not in it."""

    text: str = ""
    """Of the sink, as `2 nodes, disk` or `1 node, memory (5 s)`; empty if it is not known."""
    nodes: Whole | None = None
    """That have it; None if that is not known."""
    on_disk: Whole | None = None
    """Of these, those that have it on their disk, by an fsync; 0 also where nothing is sure after a crash."""
    kafka: str = ""
    """What Kafka has when it acknowledges a record of the load, as `acks all, 3 of 3 in sync`."""
    kafka_nodes: Whole | None = None
    """Brokers that have it by then, in memory at least; None if that is not known."""
    settings: dict[str, str] = {}
    """Of the sink, by its own names, as they were in the trial."""


class Asked(_Record):
    """What came of a query after a trial; of a cell, of all its trials: the worst answer and the median time."""

    query: str
    """Its name."""
    right: bool | None = None
    """Whether the answer is the one that follows from the records that were sent; None if that is not known."""
    by_index: bool | None = None
    """Whether an index finds the records, so that the sink need not read all of them; None if that is not known."""
    found: Whole | None = None
    """Records that the conditions hold for, by the sink; of a cell, in its last trial."""
    milliseconds: Amount | None = None
    """How long the answer took, on a sink that has nothing else to do."""
    problem: str = ""
    """Why there is no answer; empty if there is one."""


class Reads(_Record):
    """Queries that were asked beside a load; latencies are from when one was due to its answer."""

    loaded_ms: LatencyMs | None = None
    """While the load was offered."""
    idle_ms: LatencyMs | None = None
    """After it, at the same rate, when the sink had nothing else to do."""
    failed: Whole = 0
    """Queries without an answer, in both."""
    problem: str = ""
    """What the first of them said."""
    unasked: Whole = 0
    """Queries that were due, in both, and not begun before the end, since the sink still worked at those before: their
    times are in no latency, which would be longer."""


class _OfCell(_Record):
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
    acks: str | None = None
    """Who had to acknowledge a record before it counted as sent; None of an earlier sinkbench, whose plan says it."""
    settings: dict[str, dict[str, str]] = {}
    """What the sink's services were set to for the time of a trial, by the service."""
    pool: Pool | None = None
    """None of what does not go through a pooler, and where it cannot be told."""
    connector: str | None = None
    """The class of the connector, as its configuration names it; None of an earlier sinkbench, or if none was made."""
    records_per_write: Amount | None = None
    placement: dict[str, int] = {}
    """Tasks on each worker."""
    failed_tasks: Whole = 0
    failure: str | None = None
    """The first line of the cause that a failed task gave."""
    connections: Connections = Connections()
    latency_ms: LatencyMs | None = None
    """From due to stored, after the warm-up."""
    searchable_ms: LatencyMs | None = None
    """From due to found by a search; None in a sink where that is when it is stored."""
    cpu_seconds_per_million: dict[str, Amount | None] = {}
    jvm_cpu_seconds_per_million: dict[str, JvmCpu] = {}
    """By service; only those whose JVMs can be seen."""
    compiling_share: Amount | None = None
    """Share of the CPU time of all services that went into compiling; None if nothing tells."""
    peak_memory: dict[str, Memory] = {}
    """By service, of Kafka, Connect and the cell's own sink; only those that can be seen."""
    fetched_bytes_per_record: Amount | None = None
    """Bytes that the tasks' consumers received from Kafka."""
    limit_records_per_second: Amount | None = None
    efficiency: Amount | None = None
    """The rate divided by the sink's limit."""
    bottleneck: Bottleneck | None = None
    reads_per_second: Amount | None = None
    """The queries asked beside the load; None: none."""
    reads: Reads | None = None
    """What came of them."""
    queries: list[Asked] = []
    """What the index or table answered after the load; empty if nothing was asked."""
    durability: Durability | None = None
    """None of an earlier sinkbench, and if nobody could look; of a cell also where its trials did not agree."""
    fault: str | None = None
    """What was broken while the load was offered, by its name in the plan; None: nothing was to be."""
    backlog_records: Whole | None = None
    """Under a fault, records that were in the topic before the connector started; None: they came at a rate."""
    reasons: list[Reason] = []
    """Why the numbers must not be used; empty if they may be."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def invalid(self) -> list[str]:
        """The texts of `reasons`."""
        return [reason.text for reason in self.reasons]

    @model_validator(mode="before")
    @classmethod
    def _read_texts(cls, value: Any) -> Any:
        # An earlier sinkbench kept the texts alone.
        if isinstance(value, dict) and "reasons" not in value and isinstance(value.get("invalid"), list):
            return {**value, "reasons": [_reason_of(text) for text in value["invalid"]]}
        return value


def _reason_of(text: object) -> dict[str, object]:
    """The reason that a text without a code stands for, as far as something is decided on it."""
    known = {"not done after": ReasonCode.TIMED_OUT, "too few samples between 10 %": ReasonCode.TOO_SHORT}
    code = next((code for start, code in known.items() if str(text).startswith(start)), ReasonCode.UNKNOWN)
    return {"code": code, "text": text}


class TrialRecord(_OfCell):
    """One trial: a line of trials.jsonl."""

    trial: str
    """The trial's id, which everything that it created was named after."""
    block: Whole
    """The number of its block, from 1; 0 for a pilot."""
    started_at: str
    """ISO 8601, in UTC."""
    seconds: Amount
    """How long the whole trial took, with its preparation and its audit."""
    records: Whole
    """How many records its topic was loaded with."""
    records_per_second: Amount | None = None
    stamped_records_per_second: Amount | None = None
    """Of a drain from 10 % to 90 % of its records, by the times that the sink keeps; None where it keeps none."""
    offered_records_per_second: Amount | None = None
    """The rate at which records were offered; None of a drain."""
    sent_share: Amount | None = None
    """Share of them that was sent in time."""
    lag: Lag | None = None
    rescale: Rescale | None = None
    """None of a connector that kept its tasks."""
    recovery: Recovery | None = None
    """None of a trial in which nothing was to be broken."""
    window_seconds: Amount | None = None
    """How long the drain took, from the first record to the last; the rate is that of a part of it."""
    foreign_cores: Amount | None = None
    """Cores that were busy with what is no part of the stack while the trial drained, or stolen; None if not known."""
    stolen_cores: Amount | None = None
    """Those of them that a hypervisor gave to other machines."""
    read_ahead_records: Whole | None = None
    """The most records at one moment that tasks had read and the sink had not stored; None if that is not known."""
    stalled_seconds: Amount | None = None
    """How long no new record was seen in the stalls of the drain, all together; None if nobody looked."""
    monitoring_overhead_cores: Amount | None = None
    """Cores that sinkbench itself and the workers' metrics took while the trial drained."""
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
    audit: Audit | None = None
    """None if the trial was not audited."""
    not_audited: str = ""
    """Why it was not; empty if it was, and of an earlier sinkbench, which did not say."""
    lost_ranges: str = ""
    """The ranges of `seq` that were lost, as `17-516, 900`; of more than 10,000 the first, and ` and 7 more`."""
    duplicated_ranges: str = ""
    """The same of those that were stored more than once."""
    altered_ranges: str = ""
    """The same of those that are not as they were sent."""
    wrong_keys: dict[str, list[str]] = {}
    """The first keys that are stale, missing or not deleted, by these words."""
    bloat: Bloat | None = None
    """None of a load without changes."""
    reconciliation: Reconciliation | None = None
    notes: list[str] = []
    """What a reader must know of numbers that may be used, such as counts that disagree."""
    samples: str | None = None
    """The file of its samples, relative to the run's folder."""
    pilot: bool = False


class CellSummary(_OfCell):
    """One cell over all its trials: an item of `cells` in summary.json; `reasons` are those of its trials, if none of
    them is valid."""

    trials: Whole
    """Trials that were taken, valid or not."""
    offered_records_per_second: Amount | None = None
    """The rate at which records were offered; of a capacity, that which was confirmed. None of a drain."""
    lag: Lag | None = None
    """Of the valid trial whose lag grew most."""
    search: list[SearchStep] = []
    """The way to a capacity."""
    records_per_second: RatePerSecond | None = None
    """Of the valid trials; None if there are none, or if no rate may be quoted (`at_least`). Of a constant load,
    what was stored of it."""
    total_cpu_seconds_per_million: Spread | None = None
    """CPU seconds of all services together for a million records, without sinkbench's own; None if one was not seen."""
    total_peak_memory_bytes: Spread | None = None
    """The most that Kafka, Connect and the cell's own sink held together at one moment; None if one was not seen."""
    disk_bytes_per_record: Spread | None = None
    """What the sink's index or table took on its disk after a flush, for each stored row."""
    bloat: Bloat | None = None
    """Of a load of changes: medians of rows and bytes of the valid trials, and sums of deadlocks and rollbacks of all
    trials, valid or not."""
    cost: Cost | None = None
    """By the run's prices; None without any, and if the rate may not be quoted."""
    foreign_cores: Amount | None = None
    """The most of the valid trials; `stolen_cores` and `monitoring_overhead_cores`, too."""
    stolen_cores: Amount | None = None
    monitoring_overhead_cores: Amount | None = None
    at_least: Reason | None = None
    """Why the rate may not be quoted, with the `records_per_second` that was reached: it was not warm, not steady, or
    not alone, so that it may be faster, or nobody knows whether the sink holds what was sent. Then its rate is in no
    ratio, answer, efficiency or comparison. Else None."""
    efficiency_by_block: Spread | None = None
    """The rate divided by the limit of the same block, whose median is `efficiency`; None where the limit was measured
    once, or no block has both."""
    ratio: RatioTo | None = None
    """To the run's slowest cell; None for that one itself, and where no block has both."""
    rescale: Rescale | None = None
    """Medians of the valid trials."""
    recovery: Recovery | None = None
    """Over the valid trials; None of a cell without a fault."""
    audit: Audit | None = None
    """The sum over all trials that were audited, valid or not: a loss is not hidden by an invalid trial."""
    not_audited: Whole = 0
    """Trials without an audit, valid or not: what they lost is not known."""
    notes: list[str] = []
    """What a reader must know of numbers that may be used, such as trials that were left out."""
    passed: bool
    """Whether the numbers may be used and everything that is checked held."""
    faults: list[Reason] = []
    """What is wrong with the cell, the cause before its consequences; empty if it passed."""
    verdict: str
    """The faults in words, or why the rate must not be quoted (`at_least`), or "ok"."""

    @model_validator(mode="before")
    @classmethod
    def _read_verdict(cls, value: Any) -> Any:
        # An earlier sinkbench kept the words alone.
        if isinstance(value, dict) and "faults" not in value and isinstance(value.get("verdict"), str):
            return {**value, "faults": _faults_of(value["verdict"])}
        return value


def _faults_of(verdict: str) -> list[dict[str, object]]:
    """The faults that the words of a verdict without codes stand for."""
    words = {
        "FAILED": ReasonCode.TASKS_FAILED,
        "LOST": ReasonCode.LOST,
        "DUPLICATED": ReasonCode.DUPLICATED,
        "FOREIGN": ReasonCode.FOREIGN_RECORDS,
        "ALTERED": ReasonCode.ALTERED,
        "NOT AUDITED": ReasonCode.NOT_AUDITED,
        "NOT SUSTAINED": ReasonCode.NOT_SUSTAINED,
        "UNCLEAR": ReasonCode.UNCLEAR,
        "invalid:": ReasonCode.INVALID,
    }
    parts = [] if verdict == "ok" else verdict.split("; ")
    return [{"code": code, "text": part} for part in parts for word, code in words.items() if word in part]


class Fit(_Record):
    """A fitted number and, from at least 5 blocks, its interval."""

    estimate: float
    interval: Interval | None = None


class ScalingPoint(_Record):
    """One number of tasks of a pipeline: what was measured there, and what the fitted law gives."""

    tasks: Whole
    measured: Amount
    """The median, in records per second."""
    fitted: Amount | None = None
    added_worker: float | None = None
    """What one more worker with as many tasks as each has here would add by the law, in records per second."""


class Scaling(_Record):
    """How a pipeline's rate grows with its tasks: the universal scalability law over its cells."""

    label: str
    supported: bool
    """Whether the law describes the data; if not, `why` says what is missing, and the fit must not be used."""
    why: str | None = None
    points: list[ScalingPoint]
    one_task: Fit | None = None
    """lambda: the rate of one task, in records per second."""
    contention: Fit | None = None
    """sigma: the share of the work that tasks cannot do at once."""
    coherency: Fit | None = None
    """kappa: the cost of each pair of tasks that must agree."""
    r_squared: float | None = None
    largest_residual: Amount | None = None
    """The most by which a measured rate is off the fitted one, as a share of it."""
    peak_tasks: Fit | None = None
    """The tasks at which the rate is highest; None if there is no peak within the data."""


class Noise(_Record):
    """What comparing a pipeline with itself has shown: the outcome of `sinkbench selftest noise`."""

    blocks: Whole
    """Blocks in which both have a valid rate."""
    comparisons: Whole
    claimed: Whole
    """Comparisons whose interval of the ratio excluded 1: a difference where there is none."""
    share: Interval
    """Of claimed among the comparisons."""
    ratio: RatioTo
    """B to A over all blocks."""
    smallest_difference_percent: Amount
    """The half width of that interval: a difference below it is not seen."""
    by_cpu: Noise | None = None
    """The same by the CPU time for the same records, in place of the rate; None if that was not measured."""


class Overhead(_Record):
    """Monitoring overhead: the outcome of `sinkbench selftest overhead`."""

    blocks: Whole
    """Blocks in which both have a valid rate."""
    ratio: RatioTo
    """The rate with probes to that without."""
    lost_percent: float
    """How much lower the rate is with probes; below 0 if it is higher."""
    interval_percent: Interval
    """Of that."""


class PlanRef(_Record):
    """The plan that was run: its name, and the digest of what it measures (`Plan.sha256`)."""

    name: str
    sha256: str
    seed: int | None = None
    trials: Whole | None = None


class RunSummary(_Record):
    """A whole run: summary.json.

    `environment` is free; the table reads `stack` (its driver's name), `cpu_model` and `cpu_count` from it.
    """

    format: Literal[1] = 1
    run: str
    complete: bool
    plan: PlanRef
    environment: dict[str, JsonValue] = {}
    cells: list[CellSummary]
    limits: list[Limit] = []
    """Empty if the plan asks for none."""
    prices: Prices | None = None
    """What the costs of the cells are made of; None if nobody has given prices."""
    scaling: list[Scaling] = []
    """One for each label with cells at several numbers of tasks."""
    noise: Noise | None = None
    overhead: Overhead | None = None
    resumed: list[str] = []
    """When it was taken up again after it had been interrupted or killed: ISO 8601, in UTC."""

    @property
    def also_there(self) -> list[str]:
        """Who else was there when the run began, a line each."""
        found = self.environment.get(ALSO_THERE)
        return [str(line) for line in found] if isinstance(found, list) else []

    @property
    def records(self) -> DatasetFacts | None:
        """What the user's own records were like; None of those of noaa."""
        found = self.environment.get(RECORDS)
        return DatasetFacts.model_validate(found) if isinstance(found, dict) else None

    @property
    def passed(self) -> bool:
        """Whether the run is complete and every cell passed: exit code 0, else 1."""
        return self.complete and all(cell.passed for cell in self.cells)
