"""The definition of a figure: its input, how trials become a cell's figure, its name, and where it is shown."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, Literal

from sinkbench.analysis.samples import Sample
from sinkbench.analysis.words import whole
from sinkbench.metrics.taken import Taken
from sinkbench.results import CellSummary, RunSummary


@dataclass(frozen=True)
class Seen:
    """What a trial's probes read, and what is known of the trial.

    Attributes:
        path: services that the records pass.
        counters_go_on: whether counters of services and tasks cover the whole trial; a restart resets them.
        drained: whether the topic was full, and the connector was monitored while it emptied it.
        read_all: whether the connector has committed every record.
        task_metrics: last signs of the tasks that existed all the time.
        pooling: a pooler's settings: fields of `Pool`.
        disk_bytes_per_record: after a flush.
        other_connections: connections that others opened meanwhile."""

    samples: Sequence[Sample] = ()
    records: int = 0
    path: Collection[str] = ()
    counters_go_on: bool = True
    drained: bool = True
    read_all: bool = True
    task_metrics: Mapping[str, float] = field(default_factory=dict)
    pooling: Mapping[str, object] = field(default_factory=dict)
    records_per_write: float | None = None
    disk_bytes_per_record: float | None = None
    connection_limit: int | None = None
    other_connections: int = 0

    @property
    def counted(self) -> Sequence[Sample]:
        """Samples whose counters can be subtracted from each other."""
        return self.samples if self.counters_go_on else []


def rounded(value: float | None, digits: int = 3) -> float | None:
    return None if value is None else round(value, digits)


SqlType = Literal["DOUBLE", "BIGINT", "VARCHAR", "BOOLEAN"]
Value = str | int | float | bool | None
Fields = Mapping[str, Any]
"""Fields of a TrialRecord or a CellSummary by name."""


Head = str | Callable[[RunSummary], str]


@dataclass(frozen=True)
class Column:
    """A column of a table with one row per cell, ordered by `place`; `head` wraps at its line breaks."""

    table: str
    place: int
    head: Head
    text: Callable[[CellSummary, RunSummary], str]
    kind: Literal["number", "words", "list"] = "number"
    shown: Callable[[RunSummary], object] = lambda _: True


def column(
    table: str, place: int, head: str, path: str, shown: Callable[[float | None], str] = whole, *, always: bool = True
) -> Column:
    """A column of the number at a path in a cell's summary; if not `always`, only where a cell has one."""
    is_shown = (lambda _: True) if always else known(path)
    return Column(table, place, head, lambda cell, _: shown(find(cell, path)), shown=is_shown)


def known(*paths: str) -> Callable[[RunSummary], bool]:
    """Whether a cell of a run has the figure at one of these paths in its summary."""
    return lambda run: any(find(cell, path) not in (None, {}) for cell in run.cells for path in paths)


@dataclass(frozen=True)
class Export:
    """A column of exports: its SQL type, and its value; None if not measured."""

    name: str
    sql: SqlType
    of: Callable[[CellSummary, RunSummary], Value]


@dataclass(frozen=True)
class ByService:
    """Columns of exports, one per service: `name.service`."""

    name: str
    of: Callable[[CellSummary], Mapping[str, float | None]]


@dataclass(frozen=True)
class Metric:
    """Its `heading` in docs/methods.md; the fields of a TrialRecord and of a CellSummary; columns of tables with
    a row per cell, and `heads` of columns of others; the `place` of its `exports` among all."""

    heading: str
    of_trial: Callable[[Seen], Fields] = lambda _: {}
    of_cell: Callable[[Taken], Fields] = lambda _: {}
    columns: Sequence[Column] = ()
    heads: Sequence[str] = ()
    place: int = 0
    exports: Sequence[Export] = ()
    services: Sequence[ByService] = ()


def one_line(head: str) -> str:
    return " ".join(head.replace("-\n", "").replace("/\n", "/").replace("\n/", "/").split())


def find(record: object, path: str) -> Any:
    """The field or key at a dotted path; None if part of the path is missing."""

    def below(found: Any, name: str) -> Any:
        return found.get(name) if isinstance(found, Mapping) else getattr(found, name, None)

    return reduce(below, path.split("."), record)


def exported(sql: SqlType, name: str, path: str = "") -> Export:
    """The value at a path (default: the name) in a cell's summary; None for an empty text."""
    return Export(name, sql, lambda cell, _: None if (found := find(cell, path or name)) == "" else found)


number = partial(exported, "DOUBLE")
count = partial(exported, "BIGINT")
words = partial(exported, "VARCHAR")
flag = partial(exported, "BOOLEAN")


def bounds(name: str, figure: Callable[[CellSummary, RunSummary], object]) -> tuple[Export, ...]:
    def end(key: str) -> Export:
        return Export(f"{name}_interval_{key}", "DOUBLE", lambda cell, run: find(figure(cell, run), f"interval.{key}"))

    return end("low"), end("high")


def fields_of(metrics: Sequence[Metric], of: Callable[[Metric], Fields]) -> dict[str, Any]:
    return {name: value for metric in metrics for name, value in of(metric).items()}


def over(statistic: Callable[[Iterable[Any]], Any], *names: str, of: str = "used") -> Callable[[Taken], Fields]:
    """Fields with the same name in a trial and its cell: a statistic over "used", "valid", or all "trials"."""

    def fields(taken: Taken) -> Fields:
        trials = getattr(taken, of)
        return {name: statistic(getattr(trial, name) for trial in trials) for name in names}

    return fields
