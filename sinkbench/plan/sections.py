"""The sections of a plan file: keys, defaults, bounds, and error messages."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from loadgen.changes import shares_add_up
from loadgen.forms import DOCUMENT, Form
from loadgen.options import NOAA
from sinkbench.plan.entries import Acks, Backlog, Count, Rates, Reads, Seconds, Share
from sinkbench.yamlfile import Section, mistake

__all__ = [
    "LEAST_RECORD_BYTES",
    "Acks",
    "CapacitySection",
    "DrainLoad",
    "FaultsSustain",
    "OfferedLoad",
    "OfferedSustain",
    "PlanChanges",
    "PlanDrain",
    "PlanLoad",
    "PlanSustain",
    "ReadsSustain",
    "Until",
]

# Fits the longest station name and key, with the longest numbers.
LEAST_RECORD_BYTES = 400
# Keys of a load for NOAA's records or your own.
_OF_NOAA = ("keys", "record_bytes", "form", "changes")
_OF_OWN = ("key", "pace", "cluster")


class PlanChanges(Section):
    """Changes of keys, instead of added records only."""

    inserts: Share = Field(description="share of the records that insert a key which is not there")
    updates: Share = Field(description="share of the records that update a key which is there")
    deletes: Share = Field(
        default=0.0, description="share of the records that delete a key: tombstones, which have no value"
    )
    skew: Literal["uniform", "zipf"] = Field(
        default="uniform", description="which keys are updated: uniform: all alike; zipf: few of them mostly"
    )
    exponent: Annotated[float, Field(gt=0, le=5)] = Field(default=1.0, description="of Zipf's law")
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = Field(
        default=0, description="seed of the draws: the same changes in every trial, and every run"
    )

    @model_validator(mode="after")
    def _add_up(self) -> Self:
        if (wrong := shares_add_up(self.inserts, self.updates, self.deletes)) is not None:
            raise mistake(f"{{name}}: {wrong}")
        return self


class PlanLoad(Section):
    """The records of a trial's topic, and how they are produced."""

    partitions: Count = Field(default=24, description="partitions of the topic; no pipeline can use more tasks")
    replication: Annotated[int, Field(gt=0, le=100)] | None = Field(
        default=None, description="replicas of each partition; null: the topology's, and 1 on external clusters"
    )
    keys: Annotated[int, Field(gt=0, le=1_000_000)] = Field(
        default=10_000, description="distinct record keys; too few leave partitions empty"
    )
    record_bytes: Annotated[int, Field(ge=LEAST_RECORD_BYTES, le=1_000_000)] = Field(
        default=512, description="size of a record as a document, in bytes, whatever its form adds to that"
    )
    form: Form = Field(
        default=DOCUMENT,
        description="what the value of a record is: a document, or a row of columns; either in the envelope of"
        " Debezium's change events (-debezium), and with Kafka Connect's schema in each (-schema)",
    )
    records: Annotated[str, Field(min_length=1)] = Field(
        default=NOAA,
        description="what is loaded: noaa; your own file (newline-delimited JSON, a JSON array, CSV or Parquet,"
        " also compressed by gzip or zstd), relative to the current folder; or kafka://HOST:PORT/TOPIC",
    )
    key: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="path in a record of your own to its key, such as customer.id; null: a topic's own"
    )
    cluster: dict[str, bool | int | str | dict[str, str]] | None = Field(
        default=None,
        description="librdkafka's settings for the cluster of the topic in 'records', as kafka.settings of a stack"
        " file; null: those of the stack, if the topic is on its Kafka",
    )
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = Field(
        default="none", description="the producer's codec"
    )
    acks: Acks = Field(default="all", description="replicas that must acknowledge a record before it counts as sent")
    linger_ms: Annotated[float, Field(ge=0, le=10_000)] = Field(
        default=5, description="how long the producer waits for a batch to fill, in milliseconds"
    )
    batch_bytes: Annotated[int, Field(ge=1_024, le=100_000_000)] = Field(
        default=262_144, description="most bytes in one batch of the producer"
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
        left_out = {"records", *(_OF_NOAA if records != NOAA else _OF_OWN)}
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

    changes: PlanChanges | None = Field(
        default=None, description="shares of inserts, updates and deletes of these keys; null: inserts only"
    )


class OfferedLoad(PlanLoad):
    """The load under `mode: sustain` and `mode: capacity`."""

    pace: Literal["even", "recorded"] = Field(
        default="even",
        description="recorded: in the rhythm in which the topic in 'records' was written, on average at the offered"
        " rate; without one, at its own",
    )


class PlanDrain(Section):
    """Duration and timeouts of a drain trial."""

    pilot_seconds: Seconds = Field(
        default=5,
        description="a pilot, which warms a cell up and sizes its first trial, ends when its rate has stopped rising"
        " from one such interval to the next and JIT activity has settled, or after nine intervals",
    )
    warm_up_seconds: Seconds = Field(
        default=60,
        description="pilots go round the cells until all are warm, or until N seconds for each cell are spent",
    )
    compiling_percent: Annotated[float, Field(gt=0, le=100)] = Field(
        default=10,
        description="a trial is warm if no more of the services' CPU time than this went into compiling, in percent",
    )
    window_seconds: Seconds = Field(
        default=15, description="how long a trial's drain should take, from its first record to its last, in seconds"
    )
    stall_seconds: Seconds = Field(default=30, description="a trial ends after this many seconds without progress")
    timeout_seconds: Seconds = Field(default=300, description="longest trial, in seconds")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.timeout_seconds <= self.window_seconds:
            text = f"window_seconds {self.window_seconds:g} does not fit into timeout_seconds {self.timeout_seconds:g}"
            raise mistake(f"{text}; shorten the window or raise timeout_seconds", "window_seconds")
        return self


class PlanSustain(Section):
    """The constant load of a trial."""

    seconds: Seconds = Field(default=30, description="how long a rate is offered, in seconds")
    arrival_interval_ms: Annotated[int, Field(gt=0, le=10_000)] = Field(
        default=50,
        description="time between two readings of the progress of a sink that stores no times, in milliseconds",
    )
    latency_records: Annotated[int, Field(gt=0, le=10_000_000)] = Field(
        default=100_000, description="latency is measured on about this many records of a trial, at most"
    )


class OfferedSustain(PlanSustain):
    """A constant load whose rate the plan states."""

    records_per_second: Rates | None = Field(
        default=None, description="rates to offer, open loop: one, or a list; each makes cells of its own"
    )


class ReadsSustain(OfferedSustain):
    """The load under `mode: sustain`: a rate, and queries at the same time."""

    reads_per_second: Reads = Field(
        default=(),
        description="rates at which the plan's queries run at the same time, open loop: one, or a list; each makes"
        " cells of its own; 0: no queries",
    )


class FaultsSustain(OfferedSustain):
    """The load under `mode: faults`: a rate, or a backlog."""

    backlog_records: Backlog | None = Field(
        default=None,
        description="instead of a rate: N records are in the topic before the connector starts, and no more come, so"
        " that the fault hits tasks that read as fast as they can",
    )


class CapacitySection(Section):
    """The search for the highest sustained rate under `mode: capacity`; `trials` trials confirm it."""

    precision_percent: Annotated[float, Field(ge=0.1, le=100)] = Field(
        default=5, description="largest final gap between a rate that is sustained and one that is not, in percent"
    )


class Until(Section):
    """When a run has enough trials: it takes further blocks until either bound is reached."""

    interval_percent: Annotated[float, Field(gt=0, le=100)] = Field(
        description="widest 95 % interval of a cell's rate, in percent of its median"
    )
    trials: Annotated[int, Field(gt=0, le=10_000)] = Field(description="most trials of a cell")
