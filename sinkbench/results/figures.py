"""What trials and cells record: reasons, resources, loads, changes and faults."""

from typing import Annotated, Literal

from pydantic import Field

from sinkbench.errors import ReasonCode
from sinkbench.results.base import Amount, Interval, RatioTo, Record, Whole


class Reason(Record):
    """Why figures must not be used, or what is wrong with a cell: a code for programs, a text for people."""

    code: ReasonCode
    text: str
    figures: dict[str, float] = {}
    """The numbers in the text, by name."""


class Bottleneck(Record):
    """The component that limits a cell, and what shows it."""

    component: str
    """A service, or machine, connector, topic, generator, sink; "not identified" if nothing shows what it is."""
    evidence: str
    cause: str = ""
    """What about the component, in two to four words that are the same for the same cause."""
    or_component: str = ""
    or_cause: str = ""
    """The other cause, where a figure is too near to its threshold to decide between the two; else empty."""
    also: list[str] = []
    """What else was found, but follows from it or accounts for less."""


class Durability(Record):
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


class Connections(Record):
    """The most connections seen at once: those clients opened, and those the database server served."""

    clients_peak: Whole | None = None
    server_peak: Whole | None = None
    server_limit: Whole | None = None
    """How many the server accepts; None where it sets no limit, or it is not known."""
    others: Whole = 0
    """Connections that others opened meanwhile: they cannot be told from the connector's, and both peaks are None."""


class JvmCpu(Record):
    """CPU seconds a million records that a service's JVMs spend on themselves: part of `cpu_seconds_per_million`."""

    compiler: Amount | None = None
    gc: Amount | None = None


class Memory(Record):
    """The most memory that a service held in a trial, all workers together, in bytes."""

    resident_bytes: Amount | None = None
    """What its processes held of the machine's memory; what they share is counted once."""
    heap_bytes: Amount | None = None
    """Its JVMs' heaps in use, with garbage that is not collected yet; None of what is no JVM, or does not tell."""


class Bloat(Record):
    """What changes of keys have left in a sink, and what went wrong meanwhile; None is what it does not tell."""

    dead_rows: Whole | None = None
    """Rows that are dead, or documents that are deleted, and still take room: when the connector was gone."""
    deadlocks: Whole | None = None
    rollbacks: Whole | None = None
    """Transactions that were rolled back: what a connector has tried, and may have tried again."""
    bytes_before: Whole | None = None
    """Of the index or table, before the connector was made."""
    bytes_after: Whole | None = None


class Pool(Record):
    """What the clients of a pooler waited for; None is what it did not tell. Of a cell, over its valid trials."""

    mode: str | None = None
    """When a connection of the pool is given back, by the pooler's own word."""
    size: Whole | None = None
    prepared_statements: Whole | None = None
    """How many statements it keeps prepared for its clients on each connection; 0 if it keeps none."""
    most_waiting: Whole | None = None
    """The most clients that were seen waiting for a connection at once."""
    longest_wait_ms: Amount | None = None
    wait_ms_per_query: Amount | None = None
    """The time that clients waited, divided by the queries; a cell has the median of its trials."""
    wait_ms_per_transaction: Amount | None = None


class Prices(Record):
    """What was paid for a core, for memory and for disk; None has no price, and is in no cost."""

    currency: str
    core_hour: Amount | None = None
    memory_gb_hour: Amount | None = None
    disk_gb_month: Amount | None = None
    kept_months: Amount = 1.0


class Cost(Record):
    """What a million records of a cell cost, in the currency of the run's prices."""

    per_million: Amount | None = None
    """The sum of the parts that have a price; None if one of these was not measured."""
    cpu: Amount | None = None
    memory: Amount | None = None
    disk: Amount | None = None


class LatencyMs(Record):
    """Quantiles of the latency in milliseconds; None where `count` records cannot support one."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    p999: float | None = None
    max: float | None = None
    count: Whole
    one_in: Annotated[int, Field(ge=1)] = 1
    negative: Whole = 0
    """Records that were stored before they were due, by the clocks; in no quantile."""
    earliest: float | None = None
    """The longest time that one of these was stored before it was due; None if there are none, or it was not kept."""
    unknown: Whole = 0
    """Records of which it is not known when they were stored; in no quantile."""
    resolution_ms: Amount | None = None
    """To within how many milliseconds the time of storing is known, of 19 in 20 records."""
    histogram: str | None = None
    """All of them in microseconds, in HdrHistogram's own encoding (V2, compressed, base64)."""


class Lag(Record):
    """What was in the topic and not in the sink yet, while a constant load was offered; in records."""

    verdict: Literal["bounded", "growing", "cannot tell"]
    growth_per_second: float | None = None
    interval: Interval | None = None
    largest: int | None = None
    last: int | None = None
    """When the last record was due."""


class SearchStep(Record):
    """One load that the search for a capacity has offered, in its turn."""

    offered: Amount
    outcome: str
    """A verdict over the lag; "invalid" if there is none."""
    growth_per_second: float | None = None
    confirms: bool = False
    """Whether it was to confirm what the search had found."""
    problem: str | None = None


class Asked(Record):
    """What came of a query after a trial; of a cell, of all its trials: the worst answer and the median time."""

    query: str
    right: bool | None = None
    """Whether the answer is the one that follows from the records that were sent; None if that is not known."""
    by_index: bool | None = None
    """Whether an index finds the records, so that the sink need not read all of them; None if that is not known."""
    found: Whole | None = None
    """Records that the conditions hold for, by the sink; of a cell, in its last trial."""
    milliseconds: Amount | None = None
    """How long the answer took, on a sink that has nothing else to do."""
    rows: Whole | None = None
    """Rows of the index or table at that time, without which the time means nothing; of a cell, their median."""
    problem: str = ""


class Reads(Record):
    """Queries that were asked during a load; latencies are from when one was due to its answer."""

    loaded_ms: LatencyMs | None = None
    idle_ms: LatencyMs | None = None
    """After it, at the same rate, when the sink had nothing else to do."""
    failed: Whole = 0
    problem: str = ""
    unasked: Whole = 0
    """Queries that were due, in both, and not begun before the end; they are in no latency."""


class Rescale(Record):
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


class Act(Record):
    """A manual step that a pipeline needed to recover; the trial took it."""

    seconds: Amount
    """When, after the moment of the fault."""
    command: str
    """A request to Connect's REST interface."""


class Recovery(Record):
    """What became of a pipeline under a fault; times count from its moment. Over several trials: medians of times and
    rates, the most of what was counted, the acts of the first trial with any."""

    target: str
    """What was broken: services, workers, networks or the connector, with commas; empty if nothing was."""
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
    """Bad records that were put into the topic next to those of the load; None of another fault."""
    poison_stored: Whole | None = None
    """Those of them that are in the sink."""
    poison_dead: Whole | None = None
    """Those of them that are in the connector's dead letter queue; None if it has none."""
    dead_letters: Whole | None = None
    """Records that the connector has put into its dead letter queue; None if it has none."""
    acts: list[Act] = []

    @property
    def is_silent(self) -> bool:
        """Whether nothing was stored any more, though all may have been read."""
        return self.rate_seconds is None and self.first_record_seconds is None
