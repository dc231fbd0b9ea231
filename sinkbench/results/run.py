"""A whole run, with what each stage of its path can do alone."""

from typing import Literal

from pydantic import JsonValue

from loadgen.summary import DatasetFacts
from sinkbench.errors import ReasonCode
from sinkbench.results.base import Amount, Fit, Interval, RatioTo, Record, Spread, Whole
from sinkbench.results.cell import CellSummary
from sinkbench.results.figures import Prices

FILES = "files"
"""The key of an environment with the SHA-256 of each file that the plan names, by the file; absent if none."""

RECORDS = "records"
"""The key of an environment that tells of the user's own records, as `DatasetFacts`; absent of those of noaa."""


class LimitStep(Record):
    """One measurement of the search for a limit; the last that `confirms` is longer, and gives the limit."""

    batch: Whole | None = None
    connections: Whole
    records_per_second: Amount | None = None
    problem: str | None = None
    confirms: bool = False


class LimitInBlock(Record):
    """One measurement of a limit, next to the trials of a block."""

    block: Whole
    records_per_second: Amount | None = None
    problem: str | None = None
    cpu_seconds_per_million: dict[str, Amount | None] = {}
    """While it was written: of each service, and of the plain clients as "client"; empty if that is not known."""
    figures: dict[str, Amount] = {}
    """Of "kafka alone": `wire_bytes`, what perf-test's producers sent for a record, compressed and with headers;
    `ack_p99_ms`, the 99th percentile of the time until a record was acknowledged, of the slowest of them;
    `end_to_end_p99_ms`, that until a consumer had it; `partition_ratio`, the records of the fullest partition by those
    of the emptiest; `sent_ratio` and `stored_ratio`, what brokers sent and stored for each byte that was produced."""


class Limit(Record):
    """What a stage of the path can do alone, with the same records: an item of `limits` in summary.json."""

    sink: str
    """A sink, or what comes before it: "kafka", "connect", or "connector": a whole one whose target keeps nothing; or
    "kafka alone": a load of the plan's `kafka`."""
    way: str
    """How a plain client wrote or read; of "connect" the pipeline whose connector got none of the records; of
    "connector" the cell whose connector it was; of "kafka alone" the load's label."""
    cells: list[str] = []
    """Of "connector": all cells with that connector, which differ in what is beyond it."""
    records_per_second: Amount | None = None
    """The median of `in_blocks`; where there are none, what the search has found."""
    connections: Whole | None = None
    """Of "kafka" consumers, of "connect" and "connector" tasks, of "kafka alone" producers."""
    batch: Whole | None = None
    """Of "connector" and "kafka alone" the records of its topic."""
    record_bytes: Whole | None = None
    """Of "kafka alone"."""
    path: list[LimitStep] = []
    in_blocks: list[LimitInBlock] = []
    spread: Spread | None = None
    """The records per second of `in_blocks`; None if there are none, or none was measured."""
    cpu_seconds_per_million: dict[str, Amount | None] = {}
    figures: dict[str, Amount] = {}
    """The medians of `in_blocks`."""
    note: str | None = None


class Profile(Record):
    """The stacks of a service in one more trial of a cell, of which no figure is: an item of `profiles`."""

    cell: str
    service: str
    samples: Whole
    top: dict[str, Amount]
    """The methods and functions that are at the top of most stacks, each with its share of the samples."""
    file: str
    """Its flame graph, below the run's folder."""


class ScalingPoint(Record):
    """One number of tasks of a pipeline: what was measured there, and what the fitted law gives."""

    tasks: Whole
    measured: Amount
    fitted: Amount | None = None
    added_worker: float | None = None
    """What one more worker with as many tasks as each has here would add by the law, in records per second."""


class Scaling(Record):
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


class Noise(Record):
    """What comparing a pipeline with itself has shown: the outcome of `sinkbench selftest noise`."""

    blocks: Whole
    """Blocks in which both have a valid rate."""
    comparisons: Whole
    claimed: Whole
    """Comparisons whose interval of the ratio excluded 1: a difference where there is none."""
    share: Interval
    """Of claimed among the comparisons."""
    ratio: RatioTo
    smallest_difference_percent: Amount
    """The half width of that interval: a difference below it is not seen."""
    by_cpu: "Noise | None" = None
    """The same by the CPU time for the same records, in place of the rate; None if that was not measured."""


class Overhead(Record):
    """Monitoring overhead: the outcome of `sinkbench selftest overhead`."""

    blocks: Whole
    """Blocks in which both have a valid rate."""
    ratio: RatioTo
    """The rate with probes to that without."""
    lost_percent: float
    """How much lower the rate is with probes; below 0 if it is higher."""
    interval_percent: Interval


class PlanRef(Record):
    """The plan that was run: its name, and the digest of what it measures (`Plan.sha256`)."""

    name: str
    sha256: str
    seed: int | None = None
    trials: Whole | None = None
    cells: dict[str, str] = {}
    """The sink of each cell that answers can compare, by the cell's key: one without a summary is unknown."""


class RunSummary(Record):
    """A whole run: summary.json; tables read `stack`, `cpu_model` and `cpu_count` from its free `environment`."""

    format: Literal[1] = 1
    run: str
    complete: bool
    plan: PlanRef
    environment: dict[str, JsonValue] = {}
    cells: list[CellSummary]
    limits: list[Limit] = []
    thresholds: dict[str, dict[str, str]] | None = None
    """What the plan asks, as `< 1000`, by the pipeline's label and the figure; None if nothing."""
    prices: Prices | None = None
    """What the costs of the cells are made of; None without prices."""
    scaling: list[Scaling] = []
    """One for each label with cells at several numbers of tasks."""
    noise: Noise | None = None
    overhead: Overhead | None = None
    profiles: list[Profile] = []
    resumed: list[str] = []
    """When it was taken up again after it had been interrupted or killed: ISO 8601, in UTC."""

    @property
    def records(self) -> DatasetFacts | None:
        """What the user's own records were like; None of those of noaa."""
        found = self.environment.get(RECORDS)
        return DatasetFacts.model_validate(found) if isinstance(found, dict) else None

    @property
    def passed(self) -> bool:
        """Whether the run is complete and each cell passed, or was offered too much on purpose: exit code 0, else 1."""
        over = {ReasonCode.NOT_SUSTAINED, ReasonCode.UNCLEAR}
        return self.complete and all(
            cell.passed or ((cell.of_capacity or 0) > 1 and over >= {fault.code for fault in cell.faults})
            for cell in self.cells
        )
