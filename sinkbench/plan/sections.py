"""The sections of a plan file: keys, defaults, bounds, and error messages. Prices may also have a file of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from loadgen.forms import DOCUMENT, Form
from loadgen.options import NOAA, Changes, Compression
from sinkbench import results
from sinkbench.analysis.bound import Bound
from sinkbench.errors import PlanError
from sinkbench.plan.entries import Acks, Backlog, Count, Rates, Readers, Reads, Seconds
from sinkbench.suggest import did_you_mean
from sinkbench.yamlfile import Section, YamlFile, mistake, shown

# Fits the longest station name and key, with the longest numbers.
LEAST_RECORD_BYTES = 400
# Keys of a load for NOAA's records or your own.
_OF_NOAA = ("keys", "record_bytes", "form", "changes")
_OF_OWN = ("key", "cluster", "delimiter", "header")


class PlanLoad(Section):
    """The records of a trial's topic, and how they are produced."""

    partitions: Count = Field(default=24, description="partitions of the topic, the maximum of useful tasks")
    replication: Annotated[int, Field(gt=0, le=100)] | None = Field(
        default=None, description="replicas of each partition; null: the topology's, or 1 on external clusters"
    )
    keys: Annotated[int, Field(gt=0, le=1_000_000)] = Field(
        default=10_000, description="distinct record keys; too few leave partitions empty"
    )
    record_bytes: Annotated[int, Field(ge=LEAST_RECORD_BYTES, le=1_000_000)] = Field(
        default=512, description="size of a record as a document, without the overhead of its form"
    )
    form: Form = Field(
        default=DOCUMENT,
        description="form of the value: document or row of columns; -debezium: in a change event envelope; -schema:"
        " with its Kafka Connect schema",
    )
    records: Annotated[str, Field(min_length=1)] = Field(
        default=NOAA,
        description="noaa; your file (JSON lines or array, CSV or Parquet; also gzip), relative to the current"
        " folder; or kafka://HOST:PORT/TOPIC",
    )
    key: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="path of the key in your records, such as customer.id; null: a topic's own"
    )
    delimiter: str | None = Field(default=None, description="what is between the columns of CSV; null: found out")
    header: bool | None = Field(default=None, description="whether a CSV file begins with names; null: found out")
    cluster: dict[str, bool | int | str | dict[str, str]] | None = Field(
        default=None,
        description="librdkafka settings for the topic in 'records'; null: the stack's, if the topic is on its Kafka",
    )
    compression: Compression = Field(default="none", description="the producer's compression codec")
    acks: Acks = Field(default="all", description="replicas that must acknowledge a record")
    linger_ms: Annotated[float, Field(ge=0, le=10_000)] = Field(
        default=5, description="how long the producer waits to fill a batch"
    )
    batch_bytes: Annotated[int, Field(ge=1_024, le=100_000_000)] = Field(
        default=262_144, description="maximum size of a producer's batch"
    )

    @property
    def own(self) -> bool:
        """Whether the records are the user's own, with their own sizes and keys."""
        return self.records != NOAA

    @property
    def whole(self) -> dict[str, Any]:
        """Every key that applies, with its value, as plain values."""
        return self.model_dump(mode="json", exclude=set(_OF_NOAA) if self.own else None)

    def of(self, records: str) -> Self:
        """Returns the same load with other records."""
        left_out = {"records", "delimiter", "header", *(_OF_NOAA if records != NOAA else _OF_OWN)}
        return type(self)(records=records, **self.model_dump(include=self.model_fields_set - left_out))

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        for key in _OF_NOAA if self.own else _OF_OWN:
            if key not in self.model_fields_set:
                continue
            if self.own:
                raise mistake(f"'{key}' is for the records of noaa; those of {self.records} have theirs", key)
            # A printed plan has every key.
            if getattr(self, key) != type(self).model_fields[key].default:
                raise mistake(f"'{key}' is for records of your own; name them: records", key)
        return self


class DrainLoad(PlanLoad):
    """The load under `mode: drain`."""

    changes: Changes | None = Field(default=None, description="changes of keys; null: inserts only")


class KafkaLoad(Section):
    """A load on Kafka alone, without Connect and a sink."""

    label: Annotated[str, Field(min_length=1, max_length=60, description="its name in results")]
    mode: Literal["produce", "consume", "latency"] = Field(
        default="produce", description="producers; a consumer of a full topic; or single records until one has them"
    )
    by: Literal["perf-test", "loadgen"] = Field(
        default="perf-test", description="Kafka's own programs, which need the local stack, or a load generator"
    )
    producers: Annotated[int, Field(gt=0, le=32)] = Field(default=1, description="programs that produce at once")
    readers: Annotated[int, Field(ge=0, le=32)] = Field(default=0, description="consumer groups that read meanwhile")
    backfill_mb: Annotated[float, Field(gt=0, le=10_000)] | None = Field(
        default=None, description="MB of an old topic that one more reads"
    )
    traffic: bool = Field(default=False, description="whether to read the brokers' metrics of bytes")
    replication: Annotated[int, Field(gt=0, le=100)] = Field(default=1, description="replicas of each partition")
    acks: Acks = Field(default="1", description="replicas that must acknowledge a record")
    record_bytes: Annotated[int, Field(gt=0, le=1_000_000)] = Field(default=512, description="size of a record")
    constant: bool = Field(default=False, description="whether all records of perf-test are equal, or random")
    compression: Compression = Field(default="none", description="the producer's compression codec")
    linger_ms: Annotated[float, Field(ge=0, le=10_000)] = Field(default=5, description="wait to fill a batch")
    batch_bytes: Annotated[int, Field(ge=1_024, le=100_000_000)] = Field(default=262_144, description="largest batch")
    records_per_second: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="rate of all producers; null: unlimited"
    )
    brokers: Annotated[int, Field(gt=0, le=100)] | None = Field(
        default=None, description="brokers with its partitions; null: all"
    )
    cores: Annotated[float, Field(gt=0, le=1_000)] | None = Field(
        default=None, description="cores of each broker meanwhile; as root, on the local stack"
    )
    memory_mb: Annotated[float, Field(ge=64)] | None = Field(
        default=None, description="more memory of each broker, page cache included"
    )

    @model_validator(mode="after")
    def _has_brokers_for_its_replicas(self) -> Self:
        if self.replication > (self.brokers or self.replication):
            raise mistake(f"{self.replication} replicas need as many brokers, found {self.brokers}", "brokers")
        return self

    @model_validator(mode="after")
    def _is_one_at_a_time(self) -> Self:
        unused = ("producers", "records_per_second", "compression", "linger_ms", "batch_bytes", "constant")
        for key in [*self._set_of(unused), *(["acks"] if self.acks == "0" else [])] if self.mode == "latency" else ():
            raise mistake(f"mode latency waits for each record, found {key}: {shown(getattr(self, key))}", key)
        return self

    @model_validator(mode="after")
    def _loadgen_makes_it(self) -> Self:
        special = {"mode": self.mode == "latency", "record_bytes": self.record_bytes < LEAST_RECORD_BYTES}
        unused = ("producers", "readers", "backfill_mb", "traffic", "constant", "records_per_second")
        wrong = [*(key for key, is_wrong in special.items() if is_wrong), *self._set_of(unused)]
        for key in wrong if self.by == "loadgen" else ():
            raise mistake(f"loadgen has no {key} of {shown(getattr(self, key))}; use by: perf-test", key)
        return self

    def _set_of(self, keys: Sequence[str]) -> list[str]:
        """Those with another value than the default: a stored plan has every key."""
        return [key for key in keys if getattr(self, key) != type(self).model_fields[key].default]


class PlanDrain(Section):
    """Duration and timeouts of a drain trial."""

    pilot_seconds: Seconds = Field(
        default=5,
        description="interval of a pilot; it ends once throughput has stopped rising between intervals and JIT activity"
        " has settled, or after nine intervals",
    )
    warm_up_seconds: Seconds = Field(
        default=60,
        description="warm-up budget for each cell: pilots alternate between cells until all are warm or the total is"
        " spent",
    )
    warm_up_budget_seconds: Annotated[float, Field(ge=0, le=86_400)] = Field(
        default=60,
        description="further budget for each cell, after the last block: trials that were not warm, or stood still, are"
        " replaced until none is left or the total is spent",
    )
    compiling_percent: Annotated[float, Field(gt=0, le=100)] = Field(
        default=10, description="maximum share of the services' CPU time for compilation in a warm trial"
    )
    window_seconds: Seconds = Field(default=15, description="intended time of a drain, from first record to last")
    stall_seconds: Seconds = Field(default=30, description="a trial without progress ends after this time")
    timeout_seconds: Seconds = Field(default=300, description="maximum time of a trial")


class PlanSustain(Section):
    """The constant load of a trial."""

    seconds: Seconds = Field(default=30, description="how long a rate is offered")
    arrival_interval_ms: Annotated[int, Field(gt=0, le=10_000)] = Field(
        default=50, description="time between two progress readings of a sink that stores no times"
    )
    latency_records: Annotated[int, Field(gt=0, le=10_000_000)] = Field(
        default=100_000, description="approximate maximum number of records whose latency a trial measures"
    )


class ReadersSustain(PlanSustain):
    """The load under `mode: capacity`."""

    readers: Readers = Field(
        default=(0,),
        description="further consumer groups that read the topic, too, one number or a list; each makes its own cells",
    )


class OfferedSustain(PlanSustain):
    """A constant load whose rate the plan states."""

    records_per_second: Rates | None = Field(
        default=None, description="offered rates (open loop), one or a list; each makes its own cells"
    )


class ReadsSustain(ReadersSustain, OfferedSustain):
    """The load under `mode: sustain`: a rate, and further readers or queries at the same time."""

    reads_per_second: Reads = Field(
        default=(),
        description="rates of the plan's queries during the load (open loop), one or a list; each makes its own cells;"
        " 0: no queries",
    )


class FaultsSustain(OfferedSustain):
    """The load under `mode: faults`: a rate, or a backlog."""

    backlog_records: Backlog | None = Field(
        default=None,
        description="instead of a rate: all N records are in the topic before the connector starts, so that the fault"
        " occurs at full read speed",
    )


class CapacitySection(Section):
    """The search for the highest sustained rate under `mode: capacity`; `trials` trials confirm it."""

    precision_percent: Annotated[float, Field(ge=0.1, le=100)] = Field(
        default=5, description="maximum final gap between a sustained rate and one that is not"
    )
    of_capacity: Annotated[tuple[Annotated[float, Field(gt=0, le=2)], ...], Field(strict=False)] = Field(
        default=(),
        description="shares of the capacity found, such as [0.5, 0.8, 0.95, 1.05]; each is then offered in 'trials'"
        " trials: latency against load",
    )


class Until(Section):
    """When a run has enough trials: it takes further blocks until either bound is reached."""

    interval_percent: Annotated[float, Field(gt=0, le=100)] = Field(
        description="widest 95 % interval of a cell's rate, relative to its median"
    )
    trials: Annotated[int, Field(gt=0, le=10_000)] = Field(description="maximum number of trials of a cell")


Price = Annotated[float, Field(gt=0)]


class Prices(Section):
    """Prices of cores, memory and disk. Costs leave out what has no price."""

    currency: str = Field(pattern=r"^[^\s\x00-\x1f\x7f]+$", max_length=10, description="such as EUR")
    core_hour: Price | None = Field(default=None, description="price of one busy core for an hour")
    memory_gb_hour: Price | None = Field(default=None, description="price of 10^9 bytes of memory for an hour")
    disk_gb_month: Price | None = Field(default=None, description="price of 10^9 bytes on disk for a month")
    kept_months: Price = Field(default=1.0, description="how long a record stays on disk")

    def as_kept(self) -> results.Prices:
        return results.Prices(**self.model_dump())


def load_prices(path: Path) -> Prices:
    """Reads a file with the keys of a plan's `prices`. Raises PlanError with a line for each mistake."""
    return YamlFile(path, "file of prices", PlanError).as_model(Prices)


FIGURES = (
    *("records_per_second", "efficiency", "p50_ms", "p95_ms", "p99_ms", "lost", "duplicates", "connections"),
    *("cpu_seconds_per_million", "memory_mb", "disk_bytes_per_record", "cost_per_million"),
)
Bounds = dict[str, dict[str, str]]
"""By the pipeline's label and the figure, as `< 1000`."""


def bounds_of(asked: Mapping[str, Any], labels: Sequence[str]) -> Bounds:
    """The bounds of each pipeline. Raises a mistake for an unknown figure or pipeline, and for what is no bound.

    `asked` has figures, for all pipelines, and labels with their own figures, which count instead."""
    common = {name: _bound(value, name) for name, value in asked.items() if not isinstance(value, Mapping)}
    own = {label: values for label, values in asked.items() if isinstance(values, Mapping)}
    _known(common, FIGURES, "figure", [*FIGURES, *labels])
    _known(own, labels, "pipeline", labels)
    for label, values in own.items():
        _known(values, FIGURES, "figure", FIGURES, label)
    return {
        label: {**common, **{name: _bound(value, label, name) for name, value in own.get(label, {}).items()}}
        for label in labels
    }


def _known(names: Mapping[str, Any], known: Sequence[str], kind: str, near: Sequence[str], *at: str) -> None:
    for name in names:
        if name not in known:
            raise mistake(f"there is no {kind} '{name}'{did_you_mean(name, near)}", "thresholds", *at, name)


def _bound(value: Any, *at: str) -> str:
    text = f"=={value}" if isinstance(value, int | float) and not isinstance(value, bool) else value
    try:
        bound = Bound.of(text)
    except (AttributeError, ValueError):
        example = 'a number, or a text such as "<1000"; it may begin with <, <=, >, >= or =='
        raise mistake(f"thresholds.{'.'.join(at)} must be {example}; found {shown(value)}", "thresholds", *at) from None
    return f"{bound.operator} {bound.value:.12g}"
