"""The plan: what to measure. Its file is YAML 1.2, read strictly: what is wrong is refused, with its line."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, PrivateAttr, ValidationError, ValidationInfo, field_validator, model_validator

from loadgen.forms import DOCUMENT, Form, is_row
from sinkbench.errors import PlanError
from sinkbench.plan.connectors import known_pipelines
from sinkbench.plan.faults import PlanFault
from sinkbench.plan.prices import Prices
from sinkbench.plan.sections import (
    Acks,
    Capacity,
    Multiples,
    PipelineEntry,
    PlanChanges,
    PlanDrain,
    PlanLoad,
    PlanSustain,
    Until,
    named_path,
)
from sinkbench.secrets import conceal_in
from sinkbench.suggest import did_you_mean
from sinkbench.yamlfile import Section, YamlFile, mistake, shown, to_yaml

__all__ = [
    "LEAST_BEFORE_FAULT",
    "Capacity",
    "PipelineEntry",
    "Plan",
    "PlanDrain",
    "PlanLoad",
    "PlanSustain",
    "Until",
    "load_plan",
]

_FEWEST_SAMPLES_A_WINDOW = 10
_FEWEST_SAMPLES_A_LOAD = 40
LEAST_BEFORE_FAULT = 3.0
"""A shorter time tells no rate."""


# Keys of a pipeline that are in the plan's digest only where they are given.
_LATER = ("acks", "backlog_records", "settings")
# The same of the constant load.
_LATER_OF_LOAD = ("backlog_records",)


class Plan(Section):
    """A plan with every default filled in. Made by `load_plan`."""

    name: str = Field(max_length=60, description="the plan's name, part of its runs' names (default: its file's name)")
    pipelines: Annotated[tuple[PipelineEntry, ...], Field(strict=False, min_length=1)] = Field(
        description="the pipelines to measure: names, or mappings with the keys of a pipeline"
    )
    mode: Literal["drain", "sustain", "capacity", "rescale", "faults"] = Field(
        default="drain",
        description="drain: how fast a full topic empties; sustain: whether a constant rate is kept up with, and the"
        " latency; capacity: the highest rate that is kept up with; rescale: what it costs to give a running connector"
        " another number of tasks; faults: what becomes of a constant rate while something is broken on purpose",
    )
    multiples: Multiples = Field(default=(1,), description="how many tasks a worker gets: tasks = multiple x workers")
    trials: Annotated[int, Field(gt=0, le=10_000)] = Field(
        default=3, description="trials of each cell, one in each block; with 'until' the fewest"
    )
    until: Until | None = Field(
        default=None, description="take more trials until the intervals are narrow; null: take as many as 'trials' says"
    )
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = Field(
        default=None, description="seed of the order of trials; null: drawn at random and recorded"
    )
    load: PlanLoad = Field(default=PlanLoad(), description="the records and how they are produced")
    drain: PlanDrain = Field(default=PlanDrain(), description="how long a drain trial takes")
    sustain: PlanSustain = Field(default=PlanSustain(), description="the constant load")
    capacity: Capacity = Field(default=Capacity(), description="the search for a capacity")
    faults: tuple[PlanFault, ...] = Field(
        default=(), strict=False, description="what mode faults breaks; each makes a cell of every pipeline"
    )
    limits: bool = Field(
        default=False,
        description="whether the limits of Kafka, Connect and the sinks are measured, those of sinks in each block",
    )
    queries: str | None = Field(
        default=None,
        min_length=1,
        description="folder of queries that every index and table is asked after a trial; beside the plan or in the"
        " checkout; null: none",
    )
    prices: Prices | None = Field(
        default=None,
        description="what is paid for cores, memory and disk; null: records have no cost",
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

    @field_validator("queries")
    @classmethod
    def _are_there(cls, value: str | None, info: ValidationInfo) -> str | None:
        return None if value is None else named_path(value, info, Path.is_dir)

    @model_validator(mode="after")
    def _labels_are_distinct(self) -> Self:
        first: dict[str, int] = {}
        for index, entry in enumerate(self.pipelines):
            if first.setdefault(entry.shown_name, index) != index:
                text = f"'{entry.shown_name}' names two entries of pipelines; give one of them a label of its own"
                raise mistake(text, "pipelines", index, "label")
        return self

    @model_validator(mode="after")
    def _targets_are_distinct(self) -> Self:
        # A run keeps them by these names.
        first: dict[tuple[str, str], str] = {}
        for index, entry in enumerate(self.pipelines):
            if entry.target is None:
                continue
            name = Path(entry.target).name
            other = first.setdefault((entry.sink, name), entry.target)
            if other != entry.target:
                text = f"two targets of one name, {other} and {entry.target}; give one of the files another name"
                raise mistake(text, "pipelines", index, "target")
        return self

    @model_validator(mode="after")
    def _unwatched_rates_are_known(self, info: ValidationInfo) -> Self:
        # Whoever reads a plan that is there already need not know the sinks.
        stamping = (info.context or {}).get("stamping")
        those = f" ({', '.join(stamping)})" if stamping else ""
        for index, entry in enumerate(self.pipelines):
            if not entry.probes and (self.mode != "drain" or (stamping is not None and entry.sink not in stamping)):
                text = f"probes: false needs mode drain and a sink that keeps the time of every insertion{those}"
                found = f"found mode {self.mode} and {entry.pipeline}"
                raise mistake(f"{text}; {found}", "pipelines", index, "probes")
        return self

    @model_validator(mode="after")
    def _changes_are_drained(self) -> Self:
        if self.load.changes is None:
            return self
        if self.mode != "drain":
            text = f"changes need mode drain, found {self.mode}: a row keeps no time of its last change"
            raise mistake(f"{text}; leave load.changes out, or drain", "load", "changes")
        for index, entry in enumerate(self.pipelines):
            if not entry.probes:
                text = "probes: false takes the rate from the times of rows, which updates do not change"
                raise mistake(f"{text}; leave it out, or load.changes", "pipelines", index, "probes")
        return self

    @model_validator(mode="after")
    def _rows_are_there_before_drains(self) -> Self:
        for index, entry in enumerate(self.pipelines):
            if entry.rows_before and (self.mode != "drain" or not entry.probes):
                text = "rows_before needs mode drain, and probes"
                raise mistake(f"{text}; leave it out, or drain", "pipelines", index, "rows_before")
        return self

    @model_validator(mode="after")
    def _until_goes_beyond_trials(self) -> Self:
        if self.until is not None and self.until.trials < self.trials:
            text = f"until.trials {self.until.trials} is less than trials {self.trials}, which is the least; raise it"
            raise mistake(text, "until", "trials")
        return self

    @model_validator(mode="after")
    def _rates_fit_the_mode(self) -> Self:
        for entry in self.pipelines:
            if self.offers and not self._has_load(entry) and self.load.pace == "even":
                text = f"mode {self.mode} offers {entry.shown_name} a rate, but none is given"
                raise mistake(f"{text}; set sustain.records_per_second, or records_per_second of the pipeline", "mode")
        given: list[tuple[str | int, ...]] = [
            ("pipelines", index) for index, each in enumerate(self.pipelines) if each.records_per_second is not None
        ]
        given += [("sustain",)] if self.sustain.records_per_second is not None else []
        if not self.offers and given:
            text = f"records_per_second is for modes sustain and faults; mode {self.mode} finds the rate itself"
            raise mistake(text, *given[0], "records_per_second")
        if self.mode == "capacity" and self.until is not None:
            raise mistake("until is for trials in blocks; mode capacity confirms a rate by 'trials'", "until")
        return self

    @model_validator(mode="after")
    def _backlogs_fit_the_mode(self) -> Self:
        sections: list[tuple[PipelineEntry | PlanSustain, tuple[str | int, ...]]] = [
            *((entry, ("pipelines", index)) for index, entry in enumerate(self.pipelines)),
            (self.sustain, ("sustain",)),
        ]
        for section, place in sections:
            if section.backlog_records is None:
                continue
            if self.mode != "faults":
                text = (
                    f"backlog_records is for mode faults; mode {self.mode} fills its topic, or leaves it empty, itself"
                )
                raise mistake(text, *place, "backlog_records")
            if section.records_per_second is not None:
                text = "records_per_second and backlog_records are two loads; leave one of them out"
                raise mistake(text, *place, "backlog_records")
        return self

    @model_validator(mode="after")
    def _faults_fit_the_load(self) -> Self:
        if self.mode != "faults":
            if self.faults:
                raise mistake(f"faults are for mode faults, found mode {self.mode}; set mode: faults", "faults")
            return self
        if not self.faults:
            raise mistake("mode faults breaks what 'faults' lists, but it lists nothing; add one", "mode")
        if self.load.pace != "even":
            raise mistake("mode faults needs pace: even, so that what a fault has changed can be seen", "load", "pace")
        labels = [entry.shown_name for entry in self.pipelines]
        first: dict[str, int] = {}
        for index, fault in enumerate(self.faults):
            if first.setdefault(fault.name, index) != index:
                raise mistake(f"two faults are called '{fault.name}'; give one a label", "faults", index)
            for label in fault.pipelines or ():
                if label not in labels:
                    text = f"there is no pipeline '{label}' in this plan{did_you_mean(label, labels)}"
                    raise mistake(text, "faults", index, "pipelines")
            begins, seconds = fault.begins_at(self.sustain.seconds), self.sustain.seconds
            # A backlog takes as long as it takes.
            offered = any(fault.applies_to(each.shown_name) and self.rates_of(each) for each in self.pipelines)
            if offered and not LEAST_BEFORE_FAULT <= begins < seconds:
                text = f"'{fault.name}' begins {begins:g} s into a load of {seconds:g} s; let it begin"
                text += f" {LEAST_BEFORE_FAULT:g} s after the start at least, and before the end"
                raise mistake(text, "faults", index)
        return self

    @model_validator(mode="after")
    def _reads_have_queries(self) -> Self:
        if any(self.sustain.reads_per_second) and (self.mode != "sustain" or self.queries is None):
            found = f"mode {self.mode}" if self.mode != "sustain" else "no queries"
            text = f"reads_per_second is for mode sustain and a plan with queries, found {found}"
            raise mistake(text, "sustain", "reads_per_second")
        return self

    @model_validator(mode="after")
    def _pace_fits_the_mode(self) -> Self:
        if self.load.pace != "even" and self.drains:
            text = f"pace: {self.load.pace} is for a constant load; mode {self.mode} fills the topic before it measures"
            raise mistake(text, "load", "pace")
        return self

    @model_validator(mode="after")
    def _queries_know_the_records(self) -> Self:
        other = {
            "load.records": self.load.own,
            "load.changes": self.load.changes is not None,
            "rows_before": self._has_rows_before,
        }
        found = [key for key, given in other.items() if given]
        if self.queries is not None and found:
            text = f"queries are checked against noaa's own records, each stored once; leave out queries or {found[0]}"
            raise mistake(text, "queries")
        return self

    @model_validator(mode="after")
    def _forms_are_made(self) -> Self:
        others = {"load.records": self.load.own, "load.changes": self.load.changes is not None}
        for index, entry in enumerate(self.pipelines):
            form, place = self.form_of(entry), ("load",) if entry.form is None else ("pipelines", index)
            if form == DOCUMENT:
                continue
            found = next((key for key, given in others.items() if given), "rows_before" if entry.rows_before else None)
            if found is not None:
                text = f"form: {form} is made of noaa's records alone, each stored once; leave out form or {found}"
                raise mistake(text, *place, "form")
            if self.queries is not None and is_row(form):
                text = f"queries ask for the members of documents, which form {form} has not; leave out queries or form"
                raise mistake(text, *place, "form")
        return self

    @model_validator(mode="after")
    def _rescale_has_steps(self) -> Self:
        for index, entry in enumerate(self.pipelines):
            if self.mode == "rescale" and len(self.multiples_of(entry)) < 2:
                text = f"mode rescale goes from one multiple to the next, but {entry.shown_name} has only one"
                place = () if entry.multiples is None else ("pipelines", index)
                raise mistake(f"{text}; list several", *place, "multiples")
        return self

    @model_validator(mode="after")
    def _load_is_sampled(self) -> Self:
        samples = int(self.sustain.seconds * 1000 / self.probe_interval_ms)
        if not self.drains and samples < _FEWEST_SAMPLES_A_LOAD:
            at = f"at probe_interval_ms {self.probe_interval_ms}; at least {_FEWEST_SAMPLES_A_LOAD} are needed"
            raise mistake(
                f"sustain.seconds {self.sustain.seconds:g} gives {samples} samples {at}", "sustain", "seconds"
            )
        return self

    @model_validator(mode="after")
    def _window_is_sampled(self) -> Self:
        samples = int(self.drain.window_seconds * 1000 / self.probe_interval_ms)
        if samples < _FEWEST_SAMPLES_A_WINDOW:
            window = f"a window of {self.drain.window_seconds:g} s; at least {_FEWEST_SAMPLES_A_WINDOW} are needed"
            text = f"probe_interval_ms {self.probe_interval_ms} gives {samples} samples in {window}"
            raise mistake(text, "probe_interval_ms")
        return self

    @property
    def _has_rows_before(self) -> bool:
        return any(entry.rows_before for entry in self.pipelines)

    @property
    def offers(self) -> bool:
        """Whether its trials are offered a rate that the plan states."""
        return self.mode in ("sustain", "faults")

    @property
    def drains(self) -> bool:
        """Whether its trials drain a full topic."""
        return self.mode in ("drain", "rescale")

    def rescales_of(self, entry: PipelineEntry) -> list[tuple[int, int]]:
        """Under `mode: rescale` the (multiple before, multiple after) of each step: to the list's end, and back."""
        there = list(pairwise(self.multiples_of(entry)))
        return there + [(after, before) for before, after in reversed(there)]

    def multiples_of(self, entry: PipelineEntry) -> tuple[int, ...]:
        """An entry's own multiples, else the plan's."""
        return self.multiples if entry.multiples is None else entry.multiples

    def form_of(self, entry: PipelineEntry) -> Form:
        """The form of an entry's records: its own, else the load's."""
        return self.load.form if entry.form is None else entry.form

    def acks_of(self, entry: PipelineEntry) -> Acks:
        """Who must acknowledge an entry's records: as it says itself, else as the load does."""
        return self.load.acks if entry.acks is None else entry.acks

    def rates_of(self, entry: PipelineEntry) -> tuple[float, ...]:
        """The rates offered to an entry: its own, else those under `sustain`; none of one with a backlog."""
        if self.backlog_of(entry) is not None:
            return ()
        return (self.sustain.records_per_second or ()) if entry.records_per_second is None else entry.records_per_second

    def backlog_of(self, entry: PipelineEntry) -> int | None:
        """How many records an entry finds in its topic under a fault: as it says itself, else as `sustain` does.

        None where a rate is offered instead.
        """
        if entry.backlog_records is not None or entry.records_per_second is not None:
            return entry.backlog_records
        return self.sustain.backlog_records

    def _has_load(self, entry: PipelineEntry) -> bool:
        return bool(self.rates_of(entry)) or self.backlog_of(entry) is not None

    def where(self, *path: str | int) -> str:
        """`file:line` of a key or item, such as `where("pipelines", 0)`; the plan's name if it has no file."""
        return f"plan {self.name}" if self._source is None else self._source.where(*path)

    def seeded(self) -> Plan:
        """The plan with its own seed, or one drawn at random."""
        return self if self.seed is not None else self.model_copy(update={"seed": secrets.randbelow(2**32)})

    def with_records(self, records: str | None, key: str | None) -> Plan:
        """The plan with other records, or another path to their key; None keeps the plan's. Keys that do not apply to
        them are left out, and so are queries, whose answers are known of noaa's records alone.

        Raises PlanError if the path is for records that have no such keys, or the plan makes some of its own.
        """
        load = self.load if records is None else self.load.of(records)
        made = "load.changes" if self.load.changes is not None else "rows_before" if self._has_rows_before else None
        if any(self.form_of(entry) != DOCUMENT for entry in self.pipelines):
            made = "form"
        if load.own and made is not None:
            raise PlanError(f"--records: {made} of the plan makes records as noaa's are; name a plan without it")
        if key is not None:
            if not load.own:
                raise PlanError("--key: is for records of your own; name them: --records")
            load = load.model_copy(update={"key": key})
        unasked = self.sustain.model_copy(update={"reads_per_second": ()})
        return self.model_copy(update={"load": load, **({"queries": None, "sustain": unasked} if load.own else {})})

    def at_pace(self, records_per_second: float) -> Plan:
        """The plan with this rate where `mode: sustain` follows the pace of records and no rate is given."""
        if self.mode != "sustain" or self.load.pace == "even" or self.sustain.records_per_second is not None:
            return self
        sustain = self.sustain.model_copy(update={"records_per_second": (records_per_second,)})
        return self.model_copy(update={"sustain": sustain})

    def whole(self) -> dict[str, Any]:
        """Every key with its value, as plain values."""
        whole = self.model_dump(mode="json")
        for printed, entry in zip(whole["pipelines"], self.pipelines, strict=True):
            printed["label"] = entry.shown_name
            printed["multiples"] = list(self.multiples_of(entry))
        whole["load"] = self.load.whole
        return whole

    def show(self) -> str:
        """The plan as YAML with every key; reading it gives the same plan."""
        return to_yaml(self.whole())

    @property
    def sha256(self) -> str:
        """Hex digest of `show()` without what changes no result: the seed orders trials, and prices come after them."""
        measured = {**self.whole(), "seed": None}
        del measured["prices"]
        # What an earlier sinkbench did not know, and this plan does not use, makes it no other plan.
        measured["pipelines"] = [
            {key: value for key, value in entry.items() if value or key not in _LATER}
            for entry in measured["pipelines"]
        ]
        measured["sustain"] = {
            key: value for key, value in measured["sustain"].items() if value or key not in _LATER_OF_LOAD
        }
        return hashlib.sha256(to_yaml(measured).encode()).hexdigest()


def load_plan(path: Path, connectors: Path, stamping: Collection[str] | None = None, *, kept: bool = False) -> Plan:
    """Reads the plan in the file `path`; its pipelines must be among those in the folder `connectors`. Secrets among
    overrides are concealed from then on.

    `stamping` names the sinks that keep the time of every insertion; None: that is not looked at. Files that the plan
    names are beside it or in the checkout, the folder around `connectors`; those of a plan that was `kept` with a run
    are never beside it.

    Raises PlanError with a line for each mistake, up to five: the file, the line, what was found, and what to do.
    """
    source = YamlFile(path, "plan", PlanError)
    known = known_pipelines(connectors)
    if not known:
        raise PlanError(f"{connectors}: no pipelines found; there must be files <sink>/<name>.json in this folder")
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._")[:60]
    try:
        folders = (connectors.parent,) if kept else (path.parent, connectors.parent)
        context = {"pipelines": known, "stamping": stamping, "folders": folders}
        plan = Plan.model_validate({"name": stem or "plan", **source.content}, context=context)
    except ValidationError as invalid:
        models: dict[str, type[BaseModel]] = {
            "": Plan,
            "pipelines": PipelineEntry,
            "until": Until,
            "sustain": PlanSustain,
            "capacity": Capacity,
            "load": PlanLoad,
            "load.changes": PlanChanges,
            "drain": PlanDrain,
            "faults": PlanFault,
            "prices": Prices,
        }
        raise PlanError(source.explain(invalid, models)) from None
    plan._source = source
    for entry in plan.pipelines:
        conceal_in(entry.overrides)
    return plan
