"""The facts that rules judge, and their findings, sorted, as text and as plain values. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from sinkbench.analysis.words import counted
from sinkbench.doctor.progress import Progress
from sinkbench.services.kafka import OWN_GROUP, group_of
from sinkbench.sinks.jdbcurl import JdbcUrl
from sinkbench.sinks.values import SinkState

DOCS = "docs/doctor.md"
INVALID, KNOWING = "invalidates a race", "worth knowing"


@dataclass(frozen=True)
class Found:
    """A finding: its subject (a connector, a cell, a topic), the facts with figures, why they matter, and the fix, a
    command or a setting. `invalidates` says whether a race's figures would be unusable; `rule` is what found it, which
    has what the finding leaves out. `values` are of the rule's texts."""

    subject: str
    what: str
    why: str = ""
    fix: str = ""
    invalidates: bool = False
    values: Mapping[str, object] = field(default_factory=dict)
    rule: "Rule | None" = None

    def by(self, rule: "Rule", facts: "Facts") -> "Found":
        why, fix = (text.format(found=self, facts=facts, **self.values) for text in (rule.why, rule.fix))
        invalidates = self.invalidates or rule.invalidates
        return replace(self, why=self.why or why, fix=self.fix or fix, invalidates=invalidates, rule=rule)

    @property
    def code(self) -> str:
        return "" if self.rule is None else self.rule.code

    @property
    def docs(self) -> str:
        return f"{DOCS}#{self.code}"


@dataclass(frozen=True)
class NotSeen:
    """A rule lacks a fact that it needs; `why` is the reason."""

    why: str


@dataclass(frozen=True)
class Rule:
    """One check. `code` is its heading in docs/doctor.md and never changes; `needs` are the areas that it must see. The
    rest is of its findings, unless they have their own."""

    code: str
    needs: "tuple[Area, ...]"
    find: "Callable[[Facts], Iterable[Found | NotSeen]]"
    why: str = ""
    fix: str = ""
    invalidates: bool = False


@dataclass(frozen=True)
class Diagnosis:
    """Result of all rules: findings, the ones that invalidate a race first, and codes of the rules that were checked.
    `unseen` says by code why other rules were not checked."""

    findings: tuple[Found, ...]
    checked: tuple[str, ...]
    unseen: Mapping[str, str] = field(default_factory=dict)

    @property
    def invalid(self) -> bool:
        return any(each.invalidates for each in self.findings)


def diagnose(facts: "Facts", rules: Sequence[Rule]) -> Diagnosis:
    """Runs every rule whose needs are met, and sorts the findings."""
    findings: list[Found] = []
    unseen: dict[str, str] = {}
    for rule in rules:
        missing = next((facts.unseen[area] for area in rule.needs if area in facts.unseen), None)
        answers = list(rule.find(facts)) if missing is None else [NotSeen(missing)]
        findings += [each.by(rule, facts) for each in answers if isinstance(each, Found)]
        if reasons := dict.fromkeys(each.why for each in answers if isinstance(each, NotSeen)):
            unseen[rule.code] = "; ".join(reasons)
    findings.sort(key=lambda each: not each.invalidates)
    return Diagnosis(tuple(findings), tuple(rule.code for rule in rules if rule.code not in unseen), unseen)


def lines(diagnosis: Diagnosis) -> Iterator[str]:
    """The whole diagnosis as text: what invalidates a race first, then what was checked, and what was not and why."""
    for finding in diagnosis.findings:
        yield f"{INVALID if finding.invalidates else KNOWING}: {finding.subject}: {finding.what}"
        yield from (f"    why: {finding.why}", f"    fix: {finding.fix}", f"    {finding.docs}", "")
    invalid = sum(each.invalidates for each in diagnosis.findings)
    counts = {INVALID: invalid, KNOWING: len(diagnosis.findings) - invalid}
    came_of_it = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing found"
    rules = len(diagnosis.checked)
    yield f"{rules} of {rules + len(diagnosis.unseen)} rules saw all that they need: {came_of_it}"
    for why in dict.fromkeys(diagnosis.unseen.values()):
        yield f"not checked: {', '.join(code for code, each in diagnosis.unseen.items() if each == why)}: {why}"


def screen(each: "Connector") -> Iterator[str]:
    """One connector as text: its state, its tasks by worker, how far it has read, and why it FAILED."""
    tasks = [f"{worker} {count}" for worker, count in each.placement.items()] + [f"{each.failed} FAILED"]
    yield f"{each.name}: {each.state}, {counted(each.tasks, 'task')} ({', '.join(tasks)})"
    yield f"{each.config.get('connector.class')} reads {', '.join(each.topics)} as {each.group}"
    yield from () if each.progress is None else each.progress.lines()
    yield from ([f"why: {each.cause}", ""] if each.cause else [""])


def as_values(diagnosis: Diagnosis) -> dict[str, Any]:
    shown = ("code", "invalidates", "subject", "what", "why", "fix", "docs")
    return {
        "invalid": diagnosis.invalid,
        "findings": [{name: getattr(each, name) for name in shown} for each in diagnosis.findings],
        "checked": list(diagnosis.checked),
        "not_checked": dict(diagnosis.unseen),
    }


class Area(StrEnum):
    """Areas that may be visible or not."""

    CONNECT = "Connect"
    KAFKA = "Kafka"
    SINKS = "the sinks"
    DATABASE = "the database's connections"
    POOLER = "the pooler"
    CLUSTER = "the search cluster's nodes"
    MEMORY = "memory"
    DISK = "free disk space"


@dataclass(frozen=True)
class Connector:
    """A sink connector that exists, or that a cell of a plan would create.

    Attributes:
        label: `name`, or the pipeline's label in the plan, with the same configuration in all its cells.
        config: variables are filled in where their values are known.
        trials: whether it belongs to a running trial.
        state: RUNNING, PAUSED, STOPPED or FAILED, as Connect says.
        placement: number of tasks by worker; empty during a rebalance.
        failed: number of FAILED tasks; `cause` says why, in one line.
        pooled: whether `url` leads to a pooler; None without a URL.
        unsafe: why a crash loses records that its index or table has acknowledged, one line each.
        progress: how far it has read; None if that was not looked at. `said`: why it stands still, by a log."""

    name: str
    label: str
    config: Mapping[str, str]
    tasks: int
    planned: bool = False
    trials: bool = False
    sink: str | None = None
    state: str = "RUNNING"
    placement: Mapping[str, int] = field(default_factory=dict)
    failed: int = 0
    cause: str | None = None
    url: JdbcUrl | None = None
    pooled: bool | None = None
    unsafe: tuple[str, ...] = ()
    progress: Progress | None = None
    said: str = ""

    @property
    def group(self) -> str:
        return self.config.get(OWN_GROUP) or group_of(self.name)

    @property
    def runs(self) -> bool:
        """Whether it exists and has tasks that work or are about to."""
        return not self.planned and self.state not in ("PAUSED", "STOPPED")

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.config.get("topics", "").split(",") if name.strip())


@dataclass(frozen=True)
class Machine:
    """The services' machine; None is unknown. `available_bytes` is memory without swapping, and `needed_bytes` what
    starting the stack takes (0 if it runs). `free_bytes` is of the data disk, `least_free_bytes` what a race needs."""

    available_bytes: int | None = None
    needed_bytes: int = 0
    free_bytes: int | None = None
    least_free_bytes: int = 0


@dataclass(frozen=True)
class Facts:
    """All facts of one diagnosis.

    Attributes:
        worker: address of one Connect worker; `worker_curl` begins a command that queries it, with login.
        shared: whether others use these clusters too.
        keys, record_bytes: of the plan's load; None for your own records.
        refusals: why a race of the plan would not begin, one line each.
        connectors: those that exist, then those of the plan's cells.
        topics: the number of records that each partition has taken so far, of topics that connectors read.
        unseen: by area, why it could not be seen."""

    workers: int
    worker: str = "WORKER"
    worker_curl: str = "curl"
    shared: bool = False
    plan: str | None = None
    partitions: int | None = None
    keys: int | None = None
    record_bytes: float | None = None
    refusals: tuple[str, ...] = ()
    connectors: tuple[Connector, ...] = ()
    topics: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    sinks: Mapping[str, SinkState] = field(default_factory=dict)
    machine: Machine = field(default_factory=Machine)
    unseen: Mapping[Area, str] = field(default_factory=dict)

    @property
    def running(self) -> tuple[Connector, ...]:
        return tuple(each for each in self.connectors if each.runs)

    @property
    def planned(self) -> tuple[Connector, ...]:
        return tuple(each for each in self.connectors if each.planned)

    @property
    def in_question(self) -> tuple[Connector, ...]:
        """The connectors whose configurations are judged, each with its most tasks: the plan's, or running ones."""
        chosen = self.planned if self.plan is not None else self.running
        return tuple({each.label: each for each in sorted(chosen, key=lambda each: each.tasks)}.values())
