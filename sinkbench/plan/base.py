"""What the plans of all modes have in common."""

import hashlib
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, PrivateAttr, ValidationInfo, field_validator, model_validator
from pydantic.functional_validators import ModelWrapValidatorHandler

from loadgen.forms import DOCUMENT, Form, is_row
from loadgen.options import Changes
from sinkbench.errors import PlanError
from sinkbench.plan.entries import Acks, Arm, DrainEntry, Multiples, PipelineEntry, named_path
from sinkbench.plan.sections import FIGURES, Bounds, PlanDrain, PlanLoad, PlanSustain, Prices, Until, bounds_of
from sinkbench.topology import MOST_WORKERS
from sinkbench.yamlfile import Section, YamlFile, mistake, shown, to_yaml

# Modes with their own kind of section define their own field.
PIPELINES = Field(strict=False, min_length=1, description="the pipelines to measure: names or mappings")
LOAD = Field(description="the records and how they are produced")

MODES: "dict[str, type[Plan]]" = {}
"""The model of each mode, filled in `plan.plan`."""


ModeName = Literal["drain", "sustain", "capacity", "rescale", "faults"]


class Mode(Section):
    """The key of a plan that selects its model."""

    model_config = ConfigDict(extra="ignore")

    mode: ModeName = "drain"


class Plan(Section):
    """A plan with every default: the keys of all modes. `load_plan` and `model_validate` select the model by `mode`."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        max_length=60,
        description="part of the names of its runs (default: its file's name)",
    )
    pipelines: Annotated[tuple[PipelineEntry, ...], PIPELINES]
    arms: dict[str, Arm] = Field(
        default_factory=dict,
        description="variants of all pipelines by name, with overrides, settings, plugin or variables; each is"
        " compared with the first, block by block",
    )
    mode: ModeName = Field(
        default="drain",
        description="drain: how fast a full topic empties; sustain: whether a constant rate is sustained, and its"
        " latency; capacity: the highest sustained rate; rescale: the cost of changing the number of tasks;"
        " faults: the effects of faults",
    )
    workers: Annotated[int, Field(ge=1, le=MOST_WORKERS)] | None = Field(
        default=None,
        description="workers of the small stack that a race starts; multiples are of them, and on more workers tasks"
        " are rounded up. null: the stack's",
    )
    multiples: Multiples = Field(default=(1,), description="tasks per worker: tasks = multiple x workers")
    trials: Annotated[int, Field(gt=0, le=10_000)] = Field(
        default=3, description="trials of each cell, one in each block; with 'until' the minimum"
    )
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = Field(
        default=None, description="seed of the order of trials; null: random, and recorded"
    )
    load: Annotated[PlanLoad, LOAD] = PlanLoad()
    drain: PlanDrain = Field(default=PlanDrain(), description="warm-up and length of drain trials")
    limits: bool = Field(
        default=False,
        description="whether to measure limits: of Kafka, Connect and, in each block, connectors and sinks",
    )
    profile: bool = Field(default=False, description="whether one more trial of each cell profiles the local services")
    queries: str | None = Field(
        default=None, min_length=1, description="folder of queries that run against every index and table after a trial"
    )
    prices: Prices | None = Field(default=None, description="prices of resources; null: no costs")
    thresholds: dict[str, Any] | None = Field(
        default=None,
        description='what figures of each cell must be, as {p99_ms: "<1000", lost: 0}; below a pipeline\'s label, of'
        f" its cells alone. Figures: {', '.join(FIGURES)}",
    )
    probe_interval_ms: Annotated[int, Field(gt=0, le=60_000)] = Field(
        250, description="time between two readings of the services"
    )

    _source: YamlFile | None = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _of_its_mode(cls, value: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Any:
        if cls is not Plan or not isinstance(value, Mapping):
            made = handler(value)
            # Each pipeline once for each arm, all of one arm together.
            entries = tuple(entry.in_arm(name, arm) for name, arm in made.arms.items() for entry in made.pipelines)
            return made.model_copy(update={"pipelines": entries, "arms": {}}) if made.arms else made
        return MODES[Mode.model_validate(dict(value)).mode].model_validate(value, context=info.context)

    @field_validator("arms")
    @classmethod
    def _arms_differ(cls, value: dict[str, Arm]) -> dict[str, Arm]:
        if len(value) == 1:
            raise mistake("one arm is compared with nothing; name two or more")
        for name, arm in value.items():
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,20}", name):
                raise mistake(f"{shown(name)} is no name of an arm: up to 20 letters, digits, '.', '_' and '-'")
            if (same := next(other for other in value if value[other] == arm)) != name:
                raise mistake(
                    f"{same} and {name} differ in nothing; change overrides, settings, plugin or variables of one", name
                )
        return value

    @field_validator("queries")
    @classmethod
    def _are_there(cls, value: str | None, info: ValidationInfo) -> str | None:
        return None if value is None else named_path(value, info, Path.is_dir)

    @model_validator(mode="after")
    def _pipelines_are_distinct(self) -> Self:
        labels: set[str] = set()
        targets: dict[tuple[str, str], str] = {}
        for index, entry in enumerate(self.pipelines):
            if entry.shown_name in labels:
                text = f"'{entry.shown_name}' names two entries of pipelines; give one of them another label"
                raise mistake(text, "pipelines", index, "label")
            labels.add(entry.shown_name)
            # A run stores targets by file name.
            if entry.target is not None:
                other = targets.setdefault((entry.sink, Path(entry.target).name), entry.target)
                if other != entry.target:
                    text = f"two targets of one name, {other} and {entry.target}; give one of the files another name"
                    raise mistake(text, "pipelines", index, "target")
        return self

    @model_validator(mode="after")
    def _queries_and_forms_fit_the_records(self) -> Self:
        others = {"load.records": self.load.own, "load.changes": self.changes is not None}
        rows = {"rows_before": self._has_rows_before}
        if self.queries is not None and (found := _first({**others, **rows})) is not None:
            text = f"queries are checked against noaa's own records, each stored once; leave out queries or {found}"
            raise mistake(text, "queries")
        for index, entry in enumerate(self.pipelines):
            form = self.form_of(entry)
            rows = {"rows_before": isinstance(entry, DrainEntry) and entry.rows_before > 0}
            text = f"form: {form} is made of noaa's records alone, each stored once"
            found = None if form == DOCUMENT else _first({**others, **rows})
            if found is None and self.queries is not None and is_row(form):
                found, text = "queries", f"queries need members of documents, which form {form} has not"
            if found is not None:
                place = ("load",) if entry.form is None else ("pipelines", index)
                raise mistake(f"{text}; leave out form or {found}", *place, "form")
        return self

    @model_validator(mode="after")
    def _thresholds_are_known(self) -> Self:
        if not self.limits and any("efficiency" in bounds for bounds in (self.bounds or {}).values()):
            raise mistake("an efficiency needs the sink's limit; set limits: true", "thresholds")
        return self

    @property
    def bounds(self) -> Bounds | None:
        """The thresholds of each pipeline."""
        if self.thresholds is None:
            return None
        found = bounds_of(self.thresholds, list(dict.fromkeys(entry.unarmed for entry in self.pipelines)))
        return {entry.shown_name: found[entry.unarmed] for entry in self.pipelines}

    @property
    def _has_rows_before(self) -> bool:
        return any(isinstance(entry, DrainEntry) and entry.rows_before for entry in self.pipelines)

    @property
    def changes(self) -> Changes | None:
        """Changes of keys; None if records are only added."""
        return None

    @property
    def constant_load(self) -> PlanSustain:
        """The constant load of its trials. Raises TypeError if its mode has none."""
        raise TypeError(f"mode {self.mode} has no constant load")

    @property
    def drains(self) -> bool:
        return self.mode in ("drain", "rescale")

    @property
    def most_blocks(self) -> int:
        return self.trials

    def multiples_of(self, entry: PipelineEntry) -> tuple[int, ...]:
        return self.multiples if entry.multiples is None else entry.multiples

    def form_of(self, entry: PipelineEntry) -> Form:
        return self.load.form if entry.form is None else entry.form

    def partitions_of(self, entry: PipelineEntry) -> int:
        return self.load.partitions if entry.partitions is None else entry.partitions

    def acks_of(self, entry: PipelineEntry) -> Acks:
        return self.load.acks if entry.acks is None else entry.acks

    def where(self, *path: str | int) -> str:
        """`file:line` of a key or item, such as `where("pipelines", 0)`; the plan's name if it has no file."""
        if self._source is None:
            return f"plan {self.name}"
        if path[:1] == ("pipelines",) and isinstance(index := path[1], int):
            # Each arm repeats the file's pipelines.
            path = ("pipelines", index % len(self._source.content["pipelines"]), *path[2:])
        return self._source.where(*path)

    @property
    def where_records(self) -> str:
        """The line and key of the plan that name its records, or the option that did."""
        named = None if self._source is None else self._source.content.get("load", {}).get("records")
        return f"{self.where('load', 'records')}: load.records" if named == self.load.records else "--records"

    def seeded(self) -> Self:
        """Returns the plan with its seed, or a random one."""
        return self if self.seed is not None else self.model_copy(update={"seed": secrets.randbelow(2**32)})

    def with_records(self, records: str | None, key: str | None = None, **csv: Any) -> Self:
        """Returns the plan with other records, path to their key, and keys for CSV; None keeps the plan's.

        Drops keys that do not apply, and queries, whose answers are only known for NOAA's records. Raises PlanError."""
        load = self.load if records is None else self.load.of(records)
        forms = any(self.form_of(entry) != DOCUMENT for entry in self.pipelines)
        made = _first({"form": forms, "load.changes": self.changes is not None, "rows_before": self._has_rows_before})
        if load.own and made is not None:
            raise PlanError(f"--records: {made} of the plan makes records as noaa's are; name a plan without it")
        if given := {name: value for name, value in {"key": key, **csv}.items() if value is not None}:
            if not load.own:
                raise PlanError(f"--{next(iter(given))}: is for records of your own; name them: --records")
            load = load.model_copy(update=given)
        return self.model_copy(update={"load": load, **({"queries": None} if load.own else {})})

    def whole(self) -> dict[str, Any]:
        whole = self.model_dump(mode="json")
        for printed, entry in zip(whole["pipelines"], self.pipelines, strict=True):
            printed["label"] = entry.shown_name
            printed["multiples"] = list(self.multiples_of(entry))
        whole["load"] = self.load.whole
        if self.thresholds is None:
            del whole["thresholds"]
        return whole

    def show(self) -> str:
        """The plan as YAML with every key; reading it gives the same plan."""
        return to_yaml(self.whole())

    @property
    def sha256(self) -> str:
        """Hex digest of `show()` without keys that change no result: the order's seed, prices and thresholds."""
        measured = {**self.whole(), "seed": None, "prices": None}
        measured.pop("thresholds", None)
        return hashlib.sha256(to_yaml(measured).encode()).hexdigest()


def _first(given: Mapping[str, bool]) -> str | None:
    return next((key for key, is_given in given.items() if is_given), None)


class BlocksPlan(Plan):
    """A plan whose trials are taken in blocks, of which there may be more than `trials`."""

    until: Until | None = Field(
        default=None, description="take more trials until the intervals are narrow; null: no more than 'trials'"
    )

    @property
    def most_blocks(self) -> int:
        return self.trials if self.until is None else max(self.trials, self.until.trials)
