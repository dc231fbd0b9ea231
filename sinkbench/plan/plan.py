"""The plan: what to measure. A YAML 1.2 file with a model for each mode; mistakes are reported with their line."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from loadgen.options import Changes
from sinkbench.errors import PlanError
from sinkbench.plan import sections
from sinkbench.plan.base import LOAD, MODES, PIPELINES, BlocksPlan, Mode, Plan
from sinkbench.plan.entries import DrainEntry, FaultsEntry, PipelineEntry, RatedEntry, SustainEntry, known_pipelines
from sinkbench.plan.faults import PlanFault
from sinkbench.plan.sections import DrainLoad, PlanDrain, PlanLoad
from sinkbench.secrets import conceal_in
from sinkbench.suggest import did_you_mean
from sinkbench.yamlfile import YamlFile, mistake

# Of other modules, for those that import this one.
__all__ = ["MODES", "BlocksPlan", "DrainLoad", "PipelineEntry", "Plan", "PlanDrain", "PlanLoad"]

LEAST_BEFORE_FAULT = 3.0
"""Seconds; a shorter time is too short for a rate."""
_SUSTAIN = Field(description="the constant load")


class DrainPlan(BlocksPlan):
    """How fast does a full topic empty?"""

    mode: Literal["drain"] = "drain"
    pipelines: Annotated[tuple[DrainEntry, ...], PIPELINES]
    load: Annotated[DrainLoad, LOAD] = DrainLoad()
    kafka: Annotated[tuple[sections.KafkaLoad, ...], Field(strict=False)] = Field(
        default=(), description="loads on Kafka alone, whose limits are measured in each block"
    )

    @model_validator(mode="after")
    def _kafka_loads_are_distinct(self) -> Self:
        labels = [each.label for each in self.kafka]
        for index, label in enumerate(labels):
            if label in labels[:index]:
                raise mistake(f"two loads are called '{label}'; give one another label", "kafka", index, "label")
        return self

    @property
    def changes(self) -> Changes | None:
        return self.load.changes


def kafka_loads(plan: Plan) -> tuple[sections.KafkaLoad, ...]:
    return plan.kafka if isinstance(plan, DrainPlan) else ()


class RescalePlan(BlocksPlan):
    """What does it cost to give a running connector another number of tasks?"""

    mode: Literal["rescale"]

    @model_validator(mode="after")
    def _has_steps(self) -> Self:
        for index, entry in enumerate(self.pipelines):
            if len(self.multiples_of(entry)) < 2:
                text = f"mode rescale goes from one multiple to the next, but {entry.shown_name} has only one"
                place = () if entry.multiples is None else ("pipelines", index)
                raise mistake(f"{text}; list several", *place, "multiples")
        return self

    def steps_of(self, entry: PipelineEntry) -> list[tuple[int, int]]:
        """The (multiple before, multiple after) of each step: to the list's end, and back."""
        there = list(pairwise(self.multiples_of(entry)))
        return there + [(after, before) for before, after in reversed(there)]


class ConstantLoadPlan(Plan):
    sustain: Annotated[sections.PlanSustain, _SUSTAIN] = sections.PlanSustain()

    @property
    def constant_load(self) -> sections.PlanSustain:
        return self.sustain


class CapacityPlan(ConstantLoadPlan):
    """What is the highest sustained rate?"""

    mode: Literal["capacity"]
    sustain: Annotated[sections.ReadersSustain, _SUSTAIN] = sections.ReadersSustain()
    capacity: sections.CapacitySection = Field(default=sections.CapacitySection(), description="the capacity search")


class _RatedPlan(ConstantLoadPlan, BlocksPlan):
    """A plan that states the rates of its loads."""

    pipelines: Annotated[tuple[RatedEntry, ...], PIPELINES]
    sustain: Annotated[sections.OfferedSustain, _SUSTAIN] = sections.OfferedSustain()

    def rates_of(self, entry: PipelineEntry) -> tuple[float, ...]:
        own = entry.records_per_second if isinstance(entry, RatedEntry) else None
        return (self.sustain.records_per_second or ()) if own is None else own

    def backlog_of(self, entry: PipelineEntry) -> int | None:
        return None

    @model_validator(mode="after")
    def _loads_are_given(self) -> Self:
        for entry in self.pipelines:
            if not self.rates_of(entry) and self.backlog_of(entry) is None:
                text = f"mode {self.mode} offers {entry.shown_name} a rate, but none is given"
                raise mistake(f"{text}; set sustain.records_per_second, or records_per_second of the pipeline", "mode")
        return self


class SustainPlan(_RatedPlan):
    """Does a pipeline sustain a constant rate, and with which latency?"""

    mode: Literal["sustain"]
    pipelines: Annotated[tuple[SustainEntry, ...], PIPELINES]
    sustain: Annotated[sections.ReadsSustain, _SUSTAIN] = sections.ReadsSustain()

    @model_validator(mode="after")
    def _reads_have_queries(self) -> Self:
        if any(self.sustain.reads_per_second) and self.queries is None:
            text = "reads_per_second needs a plan with queries, found no queries"
            raise mistake(text, "sustain", "reads_per_second")
        for index, entry in enumerate(self.pipelines):
            if entry.reads_from is not None and not any(self.sustain.reads_per_second):
                raise mistake("reads_from needs sustain.reads_per_second", "pipelines", index, "reads_from")
        return self

    def with_records(self, records: str | None, key: str | None = None, **csv: Any) -> Self:
        plan = super().with_records(records, key, **csv)
        unread = plan.sustain.model_copy(update={"reads_per_second": ()})
        return plan.model_copy(update={"sustain": unread}) if plan.load.own else plan


class FaultsPlan(_RatedPlan):
    """What happens to a load during a fault?"""

    mode: Literal["faults"]
    pipelines: Annotated[tuple[FaultsEntry, ...], PIPELINES]
    sustain: Annotated[sections.FaultsSustain, _SUSTAIN] = sections.FaultsSustain()
    faults: Annotated[tuple[PlanFault, ...], Field(strict=False, min_length=1)] = Field(
        description="the faults; each makes a cell of every pipeline"
    )

    @model_validator(mode="after")
    def _faults_fit_the_load(self) -> Self:
        labels = [entry.unarmed for entry in self.pipelines]
        names: set[str] = set()
        seconds = self.sustain.seconds
        for index, fault in enumerate(self.faults):
            if fault.name in names:
                raise mistake(f"two faults are called '{fault.name}'; give one a label", "faults", index)
            names.add(fault.name)
            for label in fault.pipelines or ():
                if label not in labels:
                    text = f"there is no pipeline '{label}' in this plan{did_you_mean(label, labels)}"
                    raise mistake(text, "faults", index, "pipelines")
            begins = fault.begins_at(seconds)
            # A backlog has no fixed duration.
            offered = any(fault.applies_to(each.unarmed) and self.rates_of(each) for each in self.pipelines)
            if offered and not LEAST_BEFORE_FAULT <= begins < seconds:
                text = f"'{fault.name}' begins {begins:g} s into a load of {seconds:g} s; let it begin"
                text += f" {LEAST_BEFORE_FAULT:g} s after the start at least, and before the end"
                raise mistake(text, "faults", index)
        return self

    def rates_of(self, entry: PipelineEntry) -> tuple[float, ...]:
        return () if self.backlog_of(entry) is not None else super().rates_of(entry)

    def backlog_of(self, entry: PipelineEntry) -> int | None:
        if isinstance(entry, FaultsEntry) and (entry.records_per_second or entry.backlog_records):
            return entry.backlog_records
        return self.sustain.backlog_records


MODES.update(drain=DrainPlan, sustain=SustainPlan, capacity=CapacityPlan, rescale=RescalePlan, faults=FaultsPlan)


def load_plan(path: Path, connectors: Path, pipelines: Sequence[str] = (), *, kept: bool = False) -> Plan:
    """Reads a plan file as the model of its mode and conceals secrets among its overrides from then on.

    `pipelines`, each NAME or NAME:TARGET, replace the plan's. `kept`: the plan is stored with a run, so files that it
    names are in the checkout. Raises PlanError with a line for each mistake, up to five."""
    source = YamlFile(path, "plan", PlanError)
    if not (known := known_pipelines(connectors)):
        raise PlanError(f"{connectors}: no pipelines found; there must be files <sink>/<name>.json in this folder")
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._")[:60]
    folders = (connectors.parent,) if kept else (path.parent, connectors.parent)
    context = {"pipelines": known, "folders": folders}
    content = {"name": stem or "plan", **source.content}
    plan = None
    try:
        plan = Plan.model_validate(content, context=context)
        if pipelines:
            plan = Plan.model_validate({**content, **_replaced(plan, content, pipelines, known)}, context=context)
    except ValidationError as invalid:
        text = source.explain(invalid, MODES.get(str(source.content.get("mode", "drain")), Mode), MODES)
        # What the file has was right.
        told = text if plan is None else re.sub(rf"(?m)^{re.escape(str(path))}:\d+: ", "--pipeline: ", text)
        raise PlanError(told) from None
    for entry in plan.pipelines:
        conceal_in(entry.overrides)
    plan._source = source
    return plan


def _replaced(plan: Plan, content: Mapping[str, Any], pipelines: Sequence[str], known: Sequence[str]) -> dict[str, Any]:
    """The keys of a plan that change with its pipelines: a fault of some of them is of those with the same sinks."""
    entries = []
    for each in pipelines:
        name, _, target = each.partition(":")
        if name not in known:
            raise PlanError(f"--pipeline {name}: there is none{did_you_mean(name, known)}")
        entries.append({"pipeline": name, **({"target": target} if target else {})})
    if not isinstance(plan, FaultsPlan):
        return {"pipelines": entries}
    sinks = {entry.unarmed: entry.pipeline.partition("/")[0] for entry in plan.pipelines}
    faults = []
    for fault, given in zip(plan.faults, content["faults"], strict=True):
        wanted = {sinks[label] for label in fault.pipelines or sinks}
        affected = [each["pipeline"] for each in entries if each["pipeline"].partition("/")[0] in wanted]
        if fault.pipelines is None or affected:
            faults.append({**given, **({} if fault.pipelines is None else {"pipelines": affected})})
    return {"pipelines": entries, "faults": faults}
