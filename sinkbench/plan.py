"""What to measure: the plan file, its keys with their defaults, and what is said when it is wrong.

A plan is YAML (1.2). It is read strictly: keys that are not known, keys given twice, and values of another type are
refused, each with the line it stands on.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from sinkbench.errors import PlanError
from sinkbench.suggest import did_you_mean
from sinkbench.yamlfile import YamlFile, mistake, shown, to_yaml

__all__ = [
    "STAMPING_SINKS",
    "Capacity",
    "Drain",
    "Load",
    "PipelineEntry",
    "Plan",
    "Sustain",
    "Until",
    "known_pipelines",
    "load_plan",
]

_FEWEST_SAMPLES_A_WINDOW = 10
_FEWEST_SAMPLES_A_LOAD = 40
_SET_BY_SINKBENCH = {"name": "'label'", "tasks.max": "'multiples'", "topics": "", "topics.regex": ""}


Number = TypeVar("Number", int, float)


def _as_text(value: object) -> object:
    """A number or truth value as Connect reads it in a connector's configuration, where every value is text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return value
    raise mistake(f"{{name}} must be text, a number, true or false, found {shown(value)}")


def _acks(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _distinct(values: tuple[Number, ...]) -> tuple[Number, ...]:
    for value, count in Counter(values).items():
        if count > 1:
            raise mistake(f"{{name}} lists {value:.15g} {count} times; use 'trials' to measure a cell more often")
    return values


Count = Annotated[int, Field(gt=0, le=2**31 - 1)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Multiples = Annotated[tuple[Count, ...], Field(strict=False, min_length=1), AfterValidator(_distinct)]

Rate = Annotated[float, Field(gt=0, le=10**8)]


def _one_or_more(value: object) -> object:
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else value


Rates = Annotated[
    tuple[Rate, ...], BeforeValidator(_one_or_more), Field(strict=False, min_length=1), AfterValidator(_distinct)
]


# The longest station name and key with all numbers at their longest.
LEAST_RECORD_BYTES = 360
# Those whose table or index keeps when each record came.
STAMPING_SINKS = ("postgres",)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class PipelineEntry(_Section):
    """One pipeline to measure; its name alone stands for a mapping with nothing but `pipeline`."""

    pipeline: str = Field(description="name of the pipeline: connectors/<sink>/<name>.json without folder and ending")
    multiples: Multiples | None = Field(default=None, description="multiples for this pipeline, instead of the plan's")
    records_per_second: Rates | None = Field(
        default=None, description="rates offered to this pipeline, instead of those under 'sustain'"
    )
    overrides: dict[str, Annotated[str, BeforeValidator(_as_text)]] = Field(
        default_factory=dict, description="keys of the connector's configuration that are changed, with their values"
    )
    probes: bool = Field(
        default=True,
        description="false: while a trial runs, the sink is asked every 2 s whether all is stored, and nothing else is"
        " looked at; its rate is by the times that the sink keeps",
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

    @field_validator("overrides")
    @classmethod
    def _leaves_ours_alone(cls, value: dict[str, str]) -> dict[str, str]:
        for key in value:
            if key in _SET_BY_SINKBENCH:
                instead = _SET_BY_SINKBENCH[key]
                raise mistake(f"'{key}' is set by sinkbench" + (f"; use {instead} for it" if instead else ""), key)
        return value


class Load(_Section):
    """The records that a trial's topic is loaded with, and how they are produced."""

    partitions: Count = Field(default=24, description="partitions of the topic; no pipeline can use more tasks")
    replication: Annotated[int, Field(gt=0, le=100)] = Field(default=1, description="replicas of each partition")
    keys: Annotated[int, Field(gt=0, le=1_000_000)] = Field(
        default=10_000, description="distinct record keys; too few leave partitions empty"
    )
    record_bytes: Annotated[int, Field(ge=LEAST_RECORD_BYTES, le=1_000_000)] = Field(
        default=512, description="size of a record's value, in bytes"
    )
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = Field(
        default="none", description="the producer's codec"
    )
    acks: Annotated[Literal["all", "1", "0"], BeforeValidator(_acks)] = Field(
        default="all", description="replicas that must have a record before it counts as sent"
    )
    linger_ms: Annotated[float, Field(ge=0, le=10_000)] = Field(
        default=5, description="how long the producer waits for a batch to fill, in milliseconds"
    )
    batch_bytes: Annotated[int, Field(ge=1_024, le=100_000_000)] = Field(
        default=262_144, description="most bytes in one batch of the producer"
    )


class Drain(_Section):
    """How long a drain trial is measured, and when it is given up."""

    pilot_seconds: Seconds = Field(
        default=5,
        description="the pilot of a cell, which sizes its first trial, ends when its rate over so many seconds is no"
        " longer higher than over as many before",
    )
    warm_up_seconds: Seconds = Field(
        default=45,
        description="a pilot whose rate still rises, since the workers' JVMs are warming up, ends after this",
    )
    window_seconds: Seconds = Field(
        default=15, description="how long a trial's drain should take, from its first record to its last, in seconds"
    )
    stall_seconds: Seconds = Field(default=30, description="a trial without progress for so many seconds is over")
    timeout_seconds: Seconds = Field(
        default=300, description="and so is a trial that takes longer than so many seconds"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.timeout_seconds <= self.window_seconds:
            raise mistake(
                f"window_seconds {self.window_seconds:g} does not fit into timeout_seconds {self.timeout_seconds:g};"
                " shorten the window or raise timeout_seconds",
                "window_seconds",
            )
        return self


class Sustain(_Section):
    """The constant load that trials under `mode: sustain` and `mode: capacity` offer."""

    records_per_second: Rates | None = Field(
        default=None, description="rates that are offered, open loop: one, or a list; each makes cells of its own"
    )
    seconds: Seconds = Field(default=30, description="how long a rate is offered, in seconds")
    arrival_interval_ms: Annotated[int, Field(gt=0, le=10_000)] = Field(
        default=50, description="time between two looks at how far a sink that stamps no records has come"
    )
    latency_records: Annotated[int, Field(gt=0, le=10_000_000)] = Field(
        default=100_000, description="of at most about so many records a trial the latency is measured"
    )


class Capacity(_Section):
    """How the highest rate that is sustained is searched for under `mode: capacity`; `trials` of it confirm it."""

    precision_percent: Annotated[float, Field(ge=0.1, le=100)] = Field(
        default=5, description="how far a rate that is sustained and one that is not may be apart in the end"
    )


class Until(_Section):
    """How sure a run shall be, and what it may cost: further blocks are taken until either is reached."""

    interval_percent: Annotated[float, Field(gt=0, le=100)] = Field(
        description="until every cell's 95 % interval is at most so wide, in percent of its median"
    )
    trials: Annotated[int, Field(gt=0, le=10_000)] = Field(description="but at most so many trials a cell")


class Plan(_Section):
    """A whole plan, with every default filled in. Made by `load_plan`."""

    name: str = Field(max_length=60, description="the plan's name, part of its runs' names (default: its file's name)")
    pipelines: Annotated[tuple[PipelineEntry, ...], Field(strict=False, min_length=1)] = Field(
        description="the pipelines to measure: names, or mappings with the keys of a pipeline"
    )
    mode: Literal["drain", "sustain", "capacity", "rescale"] = Field(
        default="drain",
        description="drain: how fast a full topic empties; sustain: whether a constant rate is kept up with, and the"
        " latency; capacity: the highest rate that is kept up with; rescale: what it costs to give a running connector"
        " another number of tasks",
    )
    multiples: Multiples = Field(default=(1,), description="how many tasks a worker gets: tasks = multiple x workers")
    trials: Annotated[int, Field(gt=0, le=10_000)] = Field(
        default=3, description="trials a cell, which is also the blocks; with 'until' the least"
    )
    until: Until | None = Field(
        default=None, description="more trials until the intervals are narrow; null: as many as 'trials' says"
    )
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = Field(
        default=None, description="seed of the order of trials; null: drawn at random, and recorded"
    )
    load: Load = Field(default=Load(), description="the records and how they are produced")
    drain: Drain = Field(default=Drain(), description="how long a drain trial takes")
    sustain: Sustain = Field(default=Sustain(), description="the constant load")
    capacity: Capacity = Field(default=Capacity(), description="the search for a capacity")
    limits: bool = Field(
        default=False, description="whether the limits of Kafka, Connect and the sinks are measured, once a run"
    )
    probe_interval_ms: Annotated[int, Field(gt=0, le=60_000)] = Field(
        250, description="time between two readings of the services, in milliseconds"
    )

    _source: YamlFile | None = PrivateAttr(default=None)

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", value):
            raise mistake(f"{{name}} may hold only letters, digits, '.', '_' and '-', found {shown(value)}")
        return value

    @model_validator(mode="after")
    def _labels_are_distinct(self) -> Self:
        first: dict[str, int] = {}
        for index, entry in enumerate(self.pipelines):
            if first.setdefault(entry.shown_name, index) != index:
                raise mistake(
                    f"'{entry.shown_name}' names two entries of pipelines; give one of them a label of its own",
                    "pipelines",
                    index,
                    "label",
                )
        return self

    @model_validator(mode="after")
    def _unwatched_rates_are_known(self) -> Self:
        for index, entry in enumerate(self.pipelines):
            if not entry.probes and (self.mode != "drain" or entry.sink not in STAMPING_SINKS):
                raise mistake(
                    f"probes: false needs mode drain and a sink that keeps the time of every insertion"
                    f" ({', '.join(STAMPING_SINKS)}); found mode {self.mode} and {entry.pipeline}",
                    *("pipelines", index, "probes"),
                )
        return self

    @model_validator(mode="after")
    def _until_goes_beyond_trials(self) -> Self:
        if self.until is not None and self.until.trials < self.trials:
            raise mistake(
                f"until.trials {self.until.trials} is less than trials {self.trials}, which is the least; raise it",
                "until",
                "trials",
            )
        return self

    @model_validator(mode="after")
    def _rates_fit_the_mode(self) -> Self:
        for index, entry in enumerate(self.pipelines):
            if self.mode == "sustain" and not self.rates_of(entry):
                raise mistake(
                    f"mode sustain offers {entry.shown_name} a rate, but none is given; set sustain.records_per_second,"
                    " or records_per_second of the pipeline",
                    "mode",
                )
            if self.mode != "sustain" and entry.records_per_second is not None:
                raise mistake(
                    f"records_per_second is for mode sustain; mode {self.mode} finds the rate itself",
                    *("pipelines", index, "records_per_second"),
                )
        if self.mode != "sustain" and self.sustain.records_per_second is not None:
            raise mistake(
                f"records_per_second is for mode sustain; mode {self.mode} finds the rate itself",
                *("sustain", "records_per_second"),
            )
        if self.mode == "capacity" and self.until is not None:
            raise mistake("until is for trials in blocks; mode capacity confirms a rate by 'trials'", "until")
        return self

    @model_validator(mode="after")
    def _rescale_has_steps(self) -> Self:
        for index, entry in enumerate(self.pipelines):
            if self.mode == "rescale" and len(self.multiples_of(entry)) < 2:
                own = entry.multiples is not None
                raise mistake(
                    f"mode rescale goes from one multiple to the next, but {entry.shown_name} has only one;"
                    " list several",
                    *(("pipelines", index, "multiples") if own else ("multiples",)),
                )
        return self

    @model_validator(mode="after")
    def _load_is_sampled(self) -> Self:
        samples = int(self.sustain.seconds * 1000 / self.probe_interval_ms)
        if not self.drains and samples < _FEWEST_SAMPLES_A_LOAD:
            raise mistake(
                f"sustain.seconds {self.sustain.seconds:g} gives {samples} samples at probe_interval_ms"
                f" {self.probe_interval_ms}; at least {_FEWEST_SAMPLES_A_LOAD} are needed",
                "sustain",
                "seconds",
            )
        return self

    @model_validator(mode="after")
    def _window_is_sampled(self) -> Self:
        samples = int(self.drain.window_seconds * 1000 / self.probe_interval_ms)
        if samples < _FEWEST_SAMPLES_A_WINDOW:
            raise mistake(
                f"probe_interval_ms {self.probe_interval_ms} gives {samples} samples in a window of"
                f" {self.drain.window_seconds:g} s; at least {_FEWEST_SAMPLES_A_WINDOW} are needed",
                "probe_interval_ms",
            )
        return self

    @property
    def drains(self) -> bool:
        """Whether its trials empty a full topic."""
        return self.mode in ("drain", "rescale")

    def steps_of(self, entry: PipelineEntry) -> list[tuple[int, int]]:
        """Under `rescale` the pairs of a multiple and that which follows: through the list to its end, and back."""
        there = list(pairwise(self.multiples_of(entry)))
        return there + [(after, before) for before, after in reversed(there)]

    def multiples_of(self, entry: PipelineEntry) -> tuple[int, ...]:
        """The multiples that hold for one of the plan's entries: its own, else the plan's."""
        return self.multiples if entry.multiples is None else entry.multiples

    def rates_of(self, entry: PipelineEntry) -> tuple[float, ...]:
        """The rates that are offered to one of the plan's entries: its own, else those under `sustain`."""
        return (self.sustain.records_per_second or ()) if entry.records_per_second is None else entry.records_per_second

    def where(self, *path: str | int) -> str:
        """`file:line` of a key or list item, such as `where("pipelines", 0)`; the plan's name if it has no file."""
        return f"plan {self.name}" if self._source is None else self._source.where(*path)

    def seeded(self) -> Plan:
        """The same plan with a seed: its own, or one drawn at random."""
        return self if self.seed is not None else self.model_copy(update={"seed": secrets.randbelow(2**32)})

    def whole(self) -> dict[str, Any]:
        """Every key of the plan with its value, as plain values."""
        whole = self.model_dump(mode="json")
        for printed, entry in zip(whole["pipelines"], self.pipelines, strict=True):
            printed["label"] = entry.shown_name
            printed["multiples"] = list(self.multiples_of(entry))
        return whole

    def show(self) -> str:
        """The plan as YAML with every key in it; reading that again gives the same plan."""
        return to_yaml(self.whole())

    @property
    def sha256(self) -> str:
        """Hex digest of what is measured: of `show()` without the seed, which only changes the order of trials."""
        return hashlib.sha256(self.model_copy(update={"seed": None}).show().encode()).hexdigest()


def known_pipelines(connectors: Path) -> list[str]:
    """Names of all pipelines in the folder `connectors`, sorted: `<sink>/<name>` for each `<sink>/<name>.json`."""
    return sorted(f"{file.parent.name}/{file.stem}" for file in connectors.glob("*/*.json"))


def load_plan(path: Path, connectors: Path) -> Plan:
    """Reads the plan in the file `path`; its pipelines must be among those in the folder `connectors`.

    Raises PlanError with a line for each mistake, up to five: the file, the line, what was found, and what to do.
    """
    source = YamlFile(path, "plan", PlanError)
    known = known_pipelines(connectors)
    if not known:
        raise PlanError(f"{connectors}: no pipelines found; there must be files <sink>/<name>.json in this folder")
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._")[:60]
    try:
        plan = Plan.model_validate({"name": stem or "plan", **source.content}, context={"pipelines": known})
    except ValidationError as invalid:
        models: dict[str, type[BaseModel]] = {
            "": Plan,
            "pipelines": PipelineEntry,
            "until": Until,
            "sustain": Sustain,
            "capacity": Capacity,
            "load": Load,
            "drain": Drain,
        }
        raise PlanError(source.explain(invalid, models)) from None
    plan._source = source
    return plan
