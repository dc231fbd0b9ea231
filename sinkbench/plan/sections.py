"""The sections of a plan file: keys, defaults, bounds, and the messages about wrong values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from loadgen.changes import shares_add_up
from loadgen.forms import DOCUMENT, Form
from loadgen.options import NOAA
from sinkbench.suggest import did_you_mean
from sinkbench.yamlfile import Section, mistake, shown

__all__ = [
    "Acks",
    "Capacity",
    "Multiples",
    "PipelineEntry",
    "PlanChanges",
    "PlanDrain",
    "PlanLoad",
    "PlanSustain",
    "Until",
    "named_path",
]

# Keys of a connector that a plan must not override, and what to use instead.
_SET_BY_SINKBENCH = {"name": "'label'", "tasks.max": "'multiples'", "topics": "", "topics.regex": ""}

Number = TypeVar("Number", int, float)


def _as_text(value: object) -> object:
    # In a connector's configuration every value is text.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return value
    raise mistake(f"{{name}} must be text, a number, true or false, found {shown(value)}")


def _acks(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Acks = Literal["all", "1", "0"]


def _distinct(values: tuple[Number, ...]) -> tuple[Number, ...]:
    for value, count in Counter(values).items():
        if count > 1:
            raise mistake(f"{{name}} lists {value:.15g} {count} times; use 'trials' to measure a cell more often")
    return values


Count = Annotated[int, Field(gt=0, le=2**31 - 1)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Multiples = Annotated[tuple[Count, ...], Field(strict=False, min_length=1), AfterValidator(_distinct)]

Share = Annotated[float, Field(ge=0, le=1)]
Backlog = Annotated[int, Field(gt=0, le=10**9)]
Rate = Annotated[float, Field(gt=0, le=10**8)]


def _one_or_more(value: object) -> object:
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else value


Rates = Annotated[
    tuple[Rate, ...], BeforeValidator(_one_or_more), Field(strict=False, min_length=1), AfterValidator(_distinct)
]


def named_path(value: str, info: ValidationInfo, is_one: Callable[[Path], bool]) -> str:
    """What a plan names, as an absolute path, or relative to the checkout if it lies there.

    It is looked for in the folders of the context: beside the plan, then in the checkout. Without them it is left as it
    is. A mistake of the plan's if there is nothing there that `is_one`.
    """
    folders: tuple[Path, ...] = (info.context or {}).get("folders", ())
    if not folders:
        return value
    found = next((path for folder in folders if is_one(path := (folder / value).resolve())), None)
    if found is None:
        what = "folder" if is_one == Path.is_dir else "file"
        raise mistake(f"{{name}}: there is no {what} {shown(value)}, beside the plan or in {folders[-1]}")
    # As somebody else's checkout names it, if it can.
    checkout = folders[-1].resolve()
    return found.relative_to(checkout).as_posix() if checkout in found.parents else str(found)


Reads = Annotated[
    tuple[Annotated[float, Field(ge=0, le=10_000)], ...], BeforeValidator(_one_or_more), AfterValidator(_distinct)
]

# Fits the longest station name and key, with every number at its longest.
LEAST_RECORD_BYTES = 400
# Keys of a load that are for the one kind of records or the other.
_OF_NOAA = ("keys", "record_bytes", "form", "changes")
_OF_OWN = ("key", "pace", "cluster")


class PipelineEntry(Section):
    """One pipeline to measure. A name stands for a mapping with only `pipeline`."""

    pipeline: str = Field(description="name of the pipeline: connectors/<sink>/<name>.json without folder and ending")
    multiples: Multiples | None = Field(default=None, description="multiples for this pipeline, instead of the plan's")
    records_per_second: Rates | None = Field(
        default=None, description="rates offered to this pipeline, instead of those under 'sustain'"
    )
    backlog_records: Backlog | None = Field(
        default=None, description="backlog of this pipeline under mode faults, instead of what 'sustain' says"
    )
    overrides: dict[str, Annotated[str, BeforeValidator(_as_text)]] = Field(
        default_factory=dict, description="keys of the connector's configuration to change, with their values"
    )
    target: str | None = Field(
        default=None,
        min_length=1,
        description="file that says what the index or table is like: an index body, or SQL that makes the table"
        " `tides`; beside the plan or in the checkout (default: the sink's own)",
    )
    form: Form | None = Field(default=None, description="form of the records of this pipeline, instead of the load's")
    acks: Annotated[Acks, BeforeValidator(_acks)] | None = Field(
        default=None, description="replicas that must acknowledge a record of this pipeline, instead of the load's"
    )
    settings: dict[str, dict[str, Annotated[str, BeforeValidator(_as_text)]]] = Field(
        default_factory=dict,
        description="what the services of the sink are set to for the time of a trial, by the service: of postgres"
        " synchronous_commit, of pgbouncer its mode and pools, of elasticsearch the index's settings",
    )
    rows_before: Annotated[int, Field(ge=0, le=10**9)] = Field(
        default=0, description="rows that are put into the index or table before each trial; none of the trial's own"
    )
    probes: bool = Field(
        default=True,
        description="false: a trial reads nothing but the sink, every 2 s, to see whether all is stored; its rate comes"
        " from the times that the sink stores with the records",
    )
    label: str | None = Field(
        default=None,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        max_length=60,
        description="name shown in tables (default: the pipeline's); needed where a pipeline is listed twice",
    )

    @property
    def shown_name(self) -> str:
        return self.label if self.label is not None else self.pipeline

    @property
    def sink(self) -> str:
        return self.pipeline.split("/")[0]

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"pipeline": value}
        if not isinstance(value, dict | PipelineEntry):
            raise mistake(f"a pipeline must be a name or a mapping, found {shown(value)}")
        return value

    @field_validator("pipeline")
    @classmethod
    def _is_known(cls, value: str, info: ValidationInfo) -> str:
        known = (info.context or {}).get("pipelines")
        if known is not None and value not in known:
            raise mistake(f"unknown pipeline '{value}'{did_you_mean(value, known)}")
        return value

    @field_validator("target")
    @classmethod
    def _is_there(cls, value: str | None, info: ValidationInfo) -> str | None:
        return None if value is None else named_path(value, info, Path.is_file)

    @field_validator("overrides")
    @classmethod
    def _leaves_ours_alone(cls, value: dict[str, str]) -> dict[str, str]:
        for key in value:
            if key in _SET_BY_SINKBENCH:
                instead = _SET_BY_SINKBENCH[key]
                raise mistake(f"'{key}' is set by sinkbench" + (f"; use {instead} for it" if instead else ""), key)
        return value


class PlanChanges(Section):
    """Changes of keys, instead of records that are only ever added."""

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
        default=None, description="replicas of each partition; null: the topology's, and 1 on clusters of others"
    )
    keys: Annotated[int, Field(gt=0, le=1_000_000)] = Field(
        default=10_000, description="distinct record keys; too few leave partitions empty"
    )
    changes: PlanChanges | None = Field(
        default=None,
        description="shares of inserts, updates and deletes of these keys; null: every record is one of its own",
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
        description="what is loaded: noaa; a file of your own (newline-delimited JSON, a JSON array, CSV or Parquet,"
        " also packed by gzip or zstd), seen from where the race begins; or kafka://HOST:PORT/TOPIC",
    )
    key: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="path in a record of your own to its key, such as customer.id; null: a topic's own"
    )
    pace: Literal["even", "recorded"] = Field(
        default="even",
        description="of a constant load; recorded: in the rhythm in which the topic in 'records' was written, on"
        " average at the rate that is offered; without one, at its own",
    )
    cluster: dict[str, bool | int | str | dict[str, str]] | None = Field(
        default=None,
        description="librdkafka's settings to get into the cluster of the topic in 'records', as kafka.settings of a"
        " stack file; null: those of the stack, if the topic is on its Kafka",
    )
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = Field(
        default="none", description="the producer's codec"
    )
    acks: Annotated[Acks, BeforeValidator(_acks)] = Field(
        default="all", description="replicas that must acknowledge a record before it counts as sent"
    )
    linger_ms: Annotated[float, Field(ge=0, le=10_000)] = Field(
        default=5, description="how long the producer waits for a batch to fill, in milliseconds"
    )
    batch_bytes: Annotated[int, Field(ge=1_024, le=100_000_000)] = Field(
        default=262_144, description="most bytes in one batch of the producer"
    )

    @property
    def own(self) -> bool:
        """Whether the records are the user's own, whose sizes and keys are theirs."""
        return self.records != NOAA

    @property
    def whole(self) -> dict[str, Any]:
        """Every key that applies, with its value, as plain values."""
        return self.model_dump(mode="json", exclude=set(_OF_NOAA) if self.own else None)

    def of(self, records: str) -> PlanLoad:
        """The same load of other records."""
        left_out = {"records", *(_OF_NOAA if records != NOAA else _OF_OWN)}
        return PlanLoad(records=records, **self.model_dump(include=self.model_fields_set - left_out))

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        for key in _OF_NOAA if self.own else _OF_OWN:
            if key not in self.model_fields_set:
                continue
            if self.own:
                raise mistake(f"'{key}' is for the records of noaa; those of {self.records} have theirs", key)
            # A plan that was printed has every key.
            if getattr(self, key) != type(self).model_fields[key].default:
                raise mistake(f"'{key}' is for records of your own; name them: records", key)
        return self


class PlanDrain(Section):
    """How long a drain trial takes, and when it is given up."""

    pilot_seconds: Seconds = Field(
        default=5,
        description="a pilot, which warms a cell up and sizes its first trial, ends when its rate over so many seconds"
        " is hardly higher than over as many before and its JVMs hardly compile, or after nine times as long",
    )
    warm_up_seconds: Seconds = Field(
        default=60,
        description="pilots go round the cells until all are warm, or until so many seconds for each cell are spent",
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
    """The constant load of trials under `mode: sustain`, `mode: capacity` and `mode: faults`."""

    records_per_second: Rates | None = Field(
        default=None, description="rates to offer, open loop: one, or a list; each makes cells of its own"
    )
    backlog_records: Backlog | None = Field(
        default=None,
        description="under mode faults, instead of a rate: so many records are in the topic before the connector"
        " starts, and no more come, so that what is broken is broken while the tasks read as fast as they can",
    )
    reads_per_second: Reads = Field(
        default=(),
        strict=False,
        description="rates at which the plan's queries are asked meanwhile, open loop: one, or a list; each makes cells"
        " of its own; 0: none are asked",
    )
    seconds: Seconds = Field(default=30, description="how long a rate is offered, in seconds")
    arrival_interval_ms: Annotated[int, Field(gt=0, le=10_000)] = Field(
        default=50,
        description="time between two readings of the progress of a sink that stores no times, in milliseconds",
    )
    latency_records: Annotated[int, Field(gt=0, le=10_000_000)] = Field(
        default=100_000, description="latency is measured on about this many records of a trial, at most"
    )


class Capacity(Section):
    """The search for the highest sustained rate under `mode: capacity`; `trials` trials confirm it."""

    precision_percent: Annotated[float, Field(ge=0.1, le=100)] = Field(
        default=5,
        description="largest gap in the end between a rate that is sustained and one that is not, in percent",
    )


class Until(Section):
    """When a run has enough trials: it takes further blocks until either bound is reached."""

    interval_percent: Annotated[float, Field(gt=0, le=100)] = Field(
        description="widest 95 % interval of a cell's rate, in percent of its median"
    )
    trials: Annotated[int, Field(gt=0, le=10_000)] = Field(description="most trials of a cell")
