"""The pipelines of a plan file, with the keys of each mode, and the files that a plan names: connectors, queries."""

import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from loadgen.forms import Form
from loadgen.reading import parse_json, read_text
from sinkbench.analysis.query import Query
from sinkbench.errors import PlanError
from sinkbench.secrets import conceal_in
from sinkbench.suggest import did_you_mean
from sinkbench.yamlfile import Section, YamlFile, mistake, shown

# Maven's, with the version.
COORDINATES = re.compile(r"[\w.-]+:[\w.-]+:([\w.-]+)(?::[\w.-]+){0,2}")
# Keys of a connector that a plan must not override, and what to use instead.
_SET_BY_SINKBENCH = {"name": "'label'", "tasks.max": "'multiples'", "topics": "", "topics.regex": ""}

Number = TypeVar("Number", int, float)
Changed = TypeVar("Changed", "Arm", "PipelineEntry")


def _as_text(value: object) -> object:
    # Connect's configurations have only text values.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return value
    raise mistake(f"{{name}} must be text, a number, true or false, found {shown(value)}")


def _distinct(values: tuple[Number, ...]) -> tuple[Number, ...]:
    for value, count in Counter(values).items():
        if count > 1:
            raise mistake(f"{{name}} lists {value:.15g} {count} times; use 'trials' to measure a cell more often")
    return values


Acks = Annotated[Literal["all", "1", "0"], BeforeValidator(lambda value: str(value) if type(value) is int else value)]
Text = Annotated[str, BeforeValidator(_as_text)]
Count = Annotated[int, Field(gt=0, le=2**31 - 1)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Share = Annotated[float, Field(ge=0, le=1)]
Backlog = Annotated[int, Field(gt=0, le=10**9)]
Rate = Annotated[float, Field(gt=0, le=10**8)]
Multiples = Annotated[tuple[Count, ...], Field(strict=False, min_length=1), AfterValidator(_distinct)]
_ListOfOne = BeforeValidator(lambda value: [value] if type(value) in (int, float) else value)
Several = Annotated[tuple[Number, ...], _ListOfOne, Field(strict=False), AfterValidator(_distinct)]
Rates = Annotated[Several[Rate], Field(min_length=1)]
Readers = Annotated[Several[Annotated[int, Field(ge=0, le=100)]], Field(min_length=1)]
Reads = Several[Annotated[float, Field(ge=0, le=10_000)]]


def named_path(value: str, info: ValidationInfo, is_one: Callable[[Path], bool]) -> str:
    """Finds a path of a plan next to it, then in the checkout; relative if it is there. Raises a `mistake` of the plan.

    Without a context the path is unchanged."""
    folders: tuple[Path, ...] = (info.context or {}).get("folders", ())
    if not folders:
        return value
    found = None
    # A name may be too long, or have a zero byte.
    with suppress(OSError, ValueError):
        found = next((path for folder in folders if is_one(path := (folder / value).resolve())), None)
    if found is None:
        what = "folder" if is_one == Path.is_dir else "file"
        raise mistake(f"{{name}}: there is no {what} {shown(value)}, next to the plan or in {folders[-1]}")
    # So that it is valid in another checkout.
    checkout = folders[-1].resolve()
    return found.relative_to(checkout).as_posix() if checkout in found.parents else str(found)


# Connect's own key since Kafka 4.1 (KIP-891). Without it Connect takes the highest version that is there.
PLUGIN_VERSION = "connector.plugin.version"


def _leaves_ours_alone(value: dict[str, str]) -> dict[str, str]:
    for key in value:
        if key in _SET_BY_SINKBENCH:
            instead = _SET_BY_SINKBENCH[key]
            raise mistake(f"'{key}' is set by sinkbench" + (f"; use {instead} for it" if instead else ""), key)
    return value


def _plugin_is_there(value: str, info: ValidationInfo) -> str:
    return value if COORDINATES.fullmatch(value) else named_path(value, info, Path.exists)


def _plugin_has_a_version(section: Changed) -> Changed:
    if section.plugin is not None and PLUGIN_VERSION not in section.overrides:
        if (maven := COORDINATES.fullmatch(section.plugin)) is None:
            raise mistake(f"{section.plugin} needs its version: set overrides.{PLUGIN_VERSION}", "plugin")
        section.overrides[PLUGIN_VERSION] = maven[1]
    return section


Overrides = Annotated[
    dict[str, Text],
    AfterValidator(_leaves_ours_alone),
    Field(default_factory=dict, description="changed keys of the connector's configuration"),
]
Settings = Annotated[
    dict[str, dict[str, Text]],
    Field(
        default_factory=dict,
        description="settings of the sink's services during a trial, by service: synchronous_commit of postgres; mode"
        " and pools of pgbouncer; index settings of elasticsearch",
    ),
]
Plugin = Annotated[
    Annotated[str, Field(min_length=1), AfterValidator(_plugin_is_there)] | None,
    Field(
        description="plugin that workers get when the race starts them: a file or folder, or Maven's"
        f" GROUP:ARTIFACT:VERSION[:TYPE[:CLASSIFIER]]; overrides has its version as `{PLUGIN_VERSION}`"
    ),
]


Variables = Annotated[
    dict[str, Text],
    Field(
        default_factory=dict,
        description="variables of the local services' run scripts, as CONNECT_HEAP, POSTGRES_SETTINGS or"
        " ELASTICSEARCH_HOME; a second stack with them runs beside the usual one",
    ),
]


class Arm(Section):
    """One of the variants that `arms` compares: what it changes of each pipeline."""

    overrides: Overrides
    settings: Settings
    plugin: Plugin = None
    variables: Variables

    _has_version = model_validator(mode="after")(_plugin_has_a_version)


class PipelineEntry(Section):
    """One pipeline to measure. A name stands for a mapping with only `pipeline`."""

    pipeline: str = Field(description="<sink>/<name> of connectors/<sink>/<name>.json")
    multiples: Multiples | None = Field(default=None, description="replaces the plan's multiples")
    overrides: Overrides
    target: str | None = Field(
        default=None,
        min_length=1,
        description="file that defines the index (its body) or the table `tides` (SQL) (default: the sink's own)",
    )
    form: Form | None = Field(default=None, description="replaces the load's form")
    acks: Acks | None = Field(default=None, description="replaces the load's acks")
    partitions: Count | None = Field(default=None, description="replaces the load's partitions")
    settings: Settings
    plugin: Plugin = None
    variables: Variables
    label: str | None = Field(
        default=None,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        max_length=90,
        description="name in tables (default: the pipeline's); required if a pipeline is listed twice",
    )
    arm: str | None = Field(default=None, description="its arm; set by `arms`")
    may_fail: bool = Field(default=False, description="race even if its first ten records do not arrive")

    _has_version = model_validator(mode="after")(_plugin_has_a_version)

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

    @property
    def unarmed(self) -> str:
        """The name that the same pipeline has in all arms."""
        return self.shown_name if self.arm is None else self.shown_name.removesuffix(f" {self.arm}")

    def in_arm(self, name: str, arm: Arm) -> Self:
        """The same pipeline as the arm changes it."""
        settings = {
            service: {**self.settings.get(service, {}), **arm.settings.get(service, {})}
            for service in {**self.settings, **arm.settings}
        }
        changed = {"overrides": {**self.overrides, **arm.overrides}, "settings": settings}
        changed["variables"] = {**self.variables, **arm.variables}
        named = {"label": f"{self.shown_name} {name}", "arm": name, "plugin": arm.plugin or self.plugin}
        return self.model_copy(update={**changed, **named})


class DrainEntry(PipelineEntry):
    """A pipeline under `mode: drain`."""

    rows_before: Annotated[int, Field(ge=0, le=10**9)] = Field(
        default=0, description="rows in the index or table before each trial, in addition to the trial's own"
    )
    probes: bool = Field(
        default=True,
        description="false: a trial only polls the sink every 2 s for completion; the rate comes from the times stored"
        " with the records",
    )


class RatedEntry(PipelineEntry):
    """A pipeline under a constant load."""

    records_per_second: Rates | None = Field(default=None, description="replaces the rates of 'sustain'")


class SustainEntry(RatedEntry):
    """A pipeline under `mode: sustain`."""

    reads_from: Literal["standby"] | None = Field(
        default=None, description="standby: the sink's last node gets the queries during the load"
    )


class FaultsEntry(RatedEntry):
    """A pipeline under `mode: faults`."""

    backlog_records: Backlog | None = Field(default=None, description="replaces the backlog of 'sustain'")


def known_pipelines(connectors: Path) -> list[str]:
    """Sorted names `<sink>/<name>` of the connector files in a folder."""
    return sorted(f"{file.parent.name}/{file.stem}" for file in connectors.glob("*/*.json"))


def read_connector(path: Path) -> dict[str, Any]:
    """Returns the `config` of a connector file and conceals its secrets from then on. Raises PlanError."""
    try:
        found = parse_json(read_text(path, PlanError))
    except FileNotFoundError:
        raise PlanError(f"{path}: there is no such connector file; restore it, or leave the pipeline out") from None
    except ValueError as broken:
        raise PlanError(f"{path}: not a connector file ({broken}); correct it") from None
    config = found.get("config") if isinstance(found, dict) else None
    if not isinstance(config, dict):
        raise PlanError(f"{path}: not a connector file (an object with name and config); correct it")
    wrong = next((key for key, value in config.items() if isinstance(value, dict | list)), None)
    if wrong is not None:
        raise PlanError(f"{path}: not a connector file (config.{wrong} is no text, number, true or false); correct it")
    conceal_in(config)
    return config


def load_queries(folder: Path) -> list[Query]:
    """Reads the queries of a folder, sorted by file name. Raises PlanError with a line for each mistake."""
    if not (files := sorted(folder.glob("*.yaml"))):
        raise PlanError(f"{folder}: there is no query in it; put one there as a file NAME.yaml, or leave queries out")
    sources = (YamlFile(path, "query", PlanError) for path in files)
    return [each.as_model(Query, {**each.content, "name": each.path.stem}) for each in sources]
