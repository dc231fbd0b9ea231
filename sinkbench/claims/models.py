"""A claim: a YAML file that says what was published, and what must hold in a run of a plan if it is true."""

import math
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from sinkbench.errors import ClaimError, ReasonCode
from sinkbench.plan.sections import FIGURES
from sinkbench.suggest import did_you_mean
from sinkbench.yamlfile import Section, YamlFile, mistake

EXACT = ("connections", "clients", "copies", "failed_tasks", "connections_left", "failed_in_fault")
COUNTED = ("lost", "duplicates", *EXACT)
"""Figures of which one trial decides; losses only once they are audited."""
STANDBY = ("standby_lag_bytes", "standby_lag_ms")
OF_KAFKA = ("wire_bytes", "ack_p99_ms", "partition_ratio", "end_to_end_p99_ms", "sent_ratio", "stored_ratio")
"""Figures of a load on Kafka alone, as `figures` of a limit."""
KNOWN = tuple(dict.fromkeys((*FIGURES, *COUNTED, *STANDBY, "records_per_write", "sent_share", *OF_KAFKA)))
"""The figures of thresholds, and others."""
PER_SERVICE = ("cpu", "cpu_share", "node_cpu_ratio")
"""Figures of a service, as `cpu.connect`: its CPU seconds per million records, its share of those of all services, and
what its busiest node takes by what its least busy one takes."""

Text = Annotated[str, Field(min_length=1)]
Several = Field(strict=False, min_length=1)


class CellOf(Section):
    """Which cell of the plan is meant, by the fields of its summary: one alone may match. Or the label of one of its
    loads on Kafka alone, which have `records_per_second` and `OF_KAFKA`."""

    label: Text
    tasks: int | None = None
    fault: Text | None = None
    offered_records_per_second: float | None = None
    of_capacity: float | None = None
    readers: int | None = None

    @property
    def words(self) -> list[str]:
        given = self.model_dump(exclude={"label"}, exclude_none=True)
        return [self.label, *(f"{name} {value}" for name, value in given.items())]

    def __str__(self) -> str:
        return ", ".join(self.words)

    def by(self, other: "CellOf") -> str:
        """This cell divided by another one, without what both have, as `postgres/jdbc, tasks 6 / tasks 3`."""
        pairs = (self.words, other.words), (other.words, self.words)
        apart = [", ".join(word for word in one if word not in another) or "without" for one, another in pairs]
        return ", ".join([*([self.label] if self.label == other.label else []), " / ".join(apart)])


class Bounds(Section):
    """A figure lies from `at_least` to `at_most`, or `equals`; one of them at least is given."""

    at_least: float | None = None
    at_most: float | None = None
    equals: float | None = None

    @model_validator(mode="after")
    def _is_bounded(self) -> Self:
        if (self.at_least, self.at_most, self.equals) == (None, None, None):
            raise mistake("needs at_least, at_most or equals")
        return self

    def __str__(self) -> str:
        least, most = self.within
        if math.isinf(least) or math.isinf(most):
            return f"at most {most:,g}" if math.isinf(least) else f"at least {least:,g}"
        return f"{least:,g}" if least == most else f"{least:,g} to {most:,g}"

    @property
    def within(self) -> tuple[float, float]:
        exact = [] if self.equals is None else [self.equals]
        least = max([-math.inf if self.at_least is None else self.at_least, *exact])
        return least, min([math.inf if self.at_most is None else self.at_most, *exact])


class _OfFigure(Section):
    figure: str = "records_per_second"

    @model_validator(mode="after")
    def _figure_is_known(self) -> Self:
        name, _, service = self.figure.partition(".")
        if self.figure not in KNOWN and not (name in PER_SERVICE and service):
            raise mistake(f"there is no figure '{self.figure}'{did_you_mean(self.figure, KNOWN)}", "figure")
        return self


class Ratio(Bounds, _OfFigure):
    """The figure of each cell of `of`, divided by that of `to`; `per_task`: each divided by its number of tasks."""

    kind: Literal["ratio"]
    of: Annotated[tuple[CellOf, ...], Several]
    to: CellOf
    per_task: bool = False

    @property
    def cells(self) -> tuple[CellOf, ...]:
        return *self.of, self.to


class Order(_OfFigure):
    """The figure falls from each cell to the next, by more than the factor `by`."""

    kind: Literal["order"]
    falling: Annotated[tuple[CellOf, ...], Field(strict=False, min_length=2)]
    by: Annotated[float, Field(ge=1)] = 1.0

    @property
    def cells(self) -> tuple[CellOf, ...]:
        return self.falling


class _OfOne(Section):
    of: CellOf

    @property
    def cells(self) -> tuple[CellOf, ...]:
        return (self.of,)


class Threshold(_OfOne, Bounds, _OfFigure):
    """The figure of a cell has bounds; a count is one that `equals`."""

    kind: Literal["threshold", "count"]


class Failure(_OfOne):
    """A cell fails for this reason, and with one of these words if there are any."""

    kind: Literal["failure"]
    code: Annotated[ReasonCode, Field(strict=False)]
    says: Annotated[tuple[Text, ...], Field(strict=False)] = ()


class Arithmetic(Bounds):
    """The quotients of published figures."""

    kind: Literal["arithmetic"]
    quotients: Annotated[
        tuple[Annotated[tuple[float, Annotated[float, Field(gt=0)]], Field(strict=False)], ...], Several
    ]


Shape = Annotated[Ratio | Order | Threshold | Failure | Arithmetic, Field(discriminator="kind")]


class Source(Section):
    document: Text
    section: Text
    figure: Text | None = None


class Needs(Section):
    """What a run must have been on, to tell."""

    cores: Annotated[int, Field(ge=1)] | None = None
    cores_at_most: Annotated[int, Field(ge=1)] | None = None
    topology: Text | None = None
    security: Literal["on"] | None = None

    @property
    def settings(self) -> dict[str, str]:
        """sinkbench's settings for such a stack, by name."""
        return self.model_dump(include={"topology", "security"}, exclude_none=True)


class Claim(Section):
    """A published finding: `shape`, all of which must hold, or why it is `untestable`; its own `contradiction`."""

    name: str
    number: Annotated[int, Field(ge=1)]
    source: Source
    published: Text
    contradiction: Text | None = None
    core: bool = False
    """Whether it is among the few of its article that `replicate --quick` takes."""
    plan: Text | None = None
    shape: Annotated[tuple[Shape, ...], Several] | None = None
    untestable: Text | None = None
    different_here: Text | None = None
    needs: Needs = Needs()

    @property
    def cells(self) -> list[CellOf]:
        return [cell for shape in self.shape or () if not isinstance(shape, Arithmetic) for cell in shape.cells]

    @property
    def command(self) -> str | None:
        """What takes the race that tests it, on the stack that it needs; None without a plan."""
        given = "".join(f"SINKBENCH_{name.upper()}={value} " for name, value in self.needs.settings.items())
        return None if self.plan is None else f"{given}sinkbench race {self.plan}"

    @property
    def article(self) -> str:
        return self.name.partition("-")[0]

    @property
    def names(self) -> set[str]:
        """What it can be asked for by: its article, that with its number, and its whole name."""
        return {self.article, self.short, f"{self.article}-{self.number}", self.name}

    @property
    def short(self) -> str:
        """The name as far as its number, as `part8-12`."""
        return "-".join(self.name.split("-")[:2])

    @model_validator(mode="after")
    def _can_be_decided_or_says_why_not(self) -> Self:
        if (self.shape is None) == (self.untestable is None):
            raise mistake("needs either a shape, or 'untestable' with the reason", "untestable")
        measured = any(not isinstance(each, Arithmetic) for each in self.shape or ())
        if measured and self.plan is None:
            raise mistake("a shape of cells needs the plan that has them", "shape")
        if not measured and self.plan is not None:
            raise mistake("no shape is of cells, so no plan can test it; leave out the plan", "plan")
        return self


def load_claim(path: Path) -> Claim:
    """The claim in that file, which names it if it does not. Raises ClaimError with file and line of each mistake."""
    source = YamlFile(path, "claim", ClaimError)
    return source.as_model(Claim, {"name": path.stem, **source.content})


def load_claims(folder: Path, wanted: list[str] | None = None) -> list[Claim]:
    """The claims of a folder by number; only those of `wanted` articles or names, if any. ClaimError for others."""
    claims = sorted(map(load_claim, folder.glob("*.yaml")), key=lambda claim: claim.number)
    known = {name for claim in claims for name in claim.names}
    for name in wanted or ():
        if name not in known:
            likely = {claim.article for claim in claims} | {claim.short for claim in claims}
            raise ClaimError(f"{name}: is no claim and no article{did_you_mean(name, likely)}")
    return [claim for claim in claims if not wanted or claim.names & {*wanted}]
