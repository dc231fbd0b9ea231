"""The faults of a plan: what they affect, when, and for how long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from sinkbench.plan.entries import Count, Seconds, Share
from sinkbench.suggest import nearest
from sinkbench.topology import service_of
from sinkbench.yamlfile import Section, mistake

What = Literal[
    "none",
    "kill",
    "stop",
    "freeze",
    "isolate",
    "refuse",
    "fill",
    "promote",
    "delay",
    "cut",
    "throttle",
    "poison",
    "restart",
    "pause",
    "rename",
    "join",
    "command",
]
Poison = Literal["not json", "nul", "wrong type", "too large"]
Cut = Literal["reject", "drop"]
Why = Literal["read only", "no right", "no connection"]

NONE, REFUSE, FILL, POISON, COMMAND = "none", "refuse", "fill", "poison", "command"
PROMOTE = "promote"
DELAY, CUT, THROTTLE = "delay", "cut", "throttle"
WORKER, WORKERS, SINK, CONNECTOR = "worker", "workers", "sink", "connector"
ISOLATE = "isolate"
OF_SERVICES = ("kill", "stop", "freeze", ISOLATE)
"""Faults of processes or containers, which require a stack started by sinkbench."""
OF_NETWORK = (DELAY, CUT, THROTTLE)
"""Faults of connections between the workers and the sink, by a proxy."""
_SERVICES = (WORKER, WORKERS, "kafka", SINK, "pgbouncer")
_NODE = re.compile(r"(postgres|elasticsearch)|(kafka|elasticsearch|postgres|connect)-[a-z0-9-]+")
# Possible targets of each fault; the first is the default.
_TARGETS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(OF_SERVICES, _SERVICES),
    **dict.fromkeys((REFUSE, FILL, PROMOTE, *OF_NETWORK), (SINK,)),
    POISON: ("topic",),
    **dict.fromkeys(("restart", "pause", "rename", "join"), (CONNECTOR,)),
}
_DEFAULT_SHARE = 0.3
_DEFAULT_POISON = 0.01
_DEFAULT_MILLISECONDS = 10.0
_DEFAULT_BYTES_PER_SECOND = 100_000
# Keys of single faults, and which faults have them.
_OWN_KEYS: Mapping[str, str] = {
    "share": POISON,
    "records": POISON,
    "milliseconds": DELAY,
    "how": CUT,
    "why": REFUSE,
    "bytes_per_second": THROTTLE,
    "command": COMMAND,
    "undo": COMMAND,
}
# These only slow a pipeline down, so they may last until all is stored.
_LASTING = (DELAY, THROTTLE)
# A broker needs about ten seconds to restart and to accept records.
_MOST_WITHOUT_KAFKA = 12.0


class PlanFault(Section):
    """One fault. Every pipeline that it applies to has a cell with it."""

    renamed: ClassVar = {"whom": "target"}

    what: What = Field(
        description="none: nothing, for comparison; kill: SIGKILL, then started again; stop: stopped as usual, then"
        " started again; freeze: SIGSTOP, so that it answers nothing; isolate: a container"
        " without its network; refuse: the sink takes no record; fill: its"
        " disk is full; promote: its primary is killed, and a replica takes its place; delay, cut,"
        " throttle: of the network between the workers and the sink; poison: bad records come into the topic; restart,"
        " pause, rename: of the connector; join: a second connector joins, and leaves; command: whatever a command of"
        " your own breaks"
    )
    target: str | None = Field(
        default=None,
        description="worker: one that runs a task; workers: all, one after the other; kafka; sink; pgbouncer; topic;"
        " connector; or a node, such as kafka-2: of kafka and sink it is the first one (default: what 'what' can hit,"
        " if that is one)",
    )
    at_seconds: Seconds | None = Field(
        default=None, description="how long after the first record was stored, in seconds; instead of at_share"
    )
    at_share: Share | None = Field(
        default=None,
        description="after which share of the records, of a backlog of those that are stored (default: 0.3, without"
        " at_seconds)",
    )
    seconds: Seconds | None = Field(
        default=5,
        description="how long it lasts, in seconds: of each worker, if it is all of them; between two restarts; null,"
        " of delay and throttle: until all is stored",
    )
    times: Annotated[Count, Field(le=1_000)] = Field(default=1, description="how often, of restart")
    share: Annotated[float, Field(gt=0, le=0.5)] | None = Field(
        default=None, description="bad records for each good one (default: 0.01), of poison"
    )
    records: Poison | None = Field(
        default=None,
        description="of poison: not json: cut off in the middle; nul: JSON with a NUL, which JSONB refuses; wrong type:"
        " texts where the index has dates and numbers; too large: a text longer than an index takes as one word"
        " (default: not json)",
    )
    milliseconds: Annotated[float, Field(ge=0, le=10_000, multiple_of=0.5)] | None = Field(
        default=None,
        description="by which all that goes over the network comes later, each way, in steps of 0.5 (default: 10), of"
        " delay; 0: a proxy that changes nothing",
    )
    how: Cut | None = Field(
        default=None,
        description="of cut: reject: connections are closed, and new ones refused; drop: connections stay open, and"
        " nothing gets through (default: reject)",
    )
    why: Why | None = Field(
        default=None,
        description="of refuse: read only: every write fails as in a transaction, or an index, that is read-only; no"
        " right: as if the user might not write to the table; no connection: all connections of the server are taken,"
        " and those of connectors closed (default: read only)",
    )
    bytes_per_second: Annotated[int, Field(ge=1_000, le=10**9, multiple_of=1_000)] | None = Field(
        default=None,
        description="what each connection carries at most, each way, in steps of 1,000 (default: 100,000), of throttle",
    )
    command: Annotated[str, Field(min_length=1, max_length=4_000)] | None = Field(
        default=None,
        description="what breaks it, of command: a line for the shell, which runs where sinkbench does and ends within"
        " 60 s; it has the trial's names in SINKBENCH_TOPIC, SINKBENCH_CONNECTOR and SINKBENCH_TARGET",
    )
    undo: Annotated[str, Field(min_length=1, max_length=4_000)] | None = Field(
        default=None, description="what undoes that, likewise; it runs in any case"
    )
    patience_seconds: Seconds = Field(
        default=10,
        description="how long a task stays FAILED after the fault before a person would restart it, in seconds; of a"
        " pipeline that stands still and calls itself RUNNING 45 s longer",
    )
    pipelines: tuple[str, ...] | None = Field(
        default=None, strict=False, min_length=1, description="labels of the pipelines that get it; null: all"
    )
    label: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$", max_length=40)] | None = Field(
        default=None, description="name shown in tables (default: what and target)"
    )

    @model_validator(mode="after")
    def _hits_what_it_can(self) -> Self:
        can = _TARGETS.get(self.what, ())
        if self.target is None and len(can) > 1:
            raise mistake(f"'{self.what}' needs 'target': {', '.join(can)}", "what")
        if self.target is not None and self.target not in can and self.node is None:
            near = nearest(self.target, can) if self.what in OF_SERVICES else None
            nodes = " or a node, such as kafka-2" if self.what in OF_SERVICES else ""
            those = f"; it can hit {', '.join(can)}{nodes}" if can else "; leave 'target' out"
            those += f"; did you mean '{near}'?" if near else ""
            raise mistake(f"'{self.what}' cannot hit '{self.target}'{those}", "target")
        if self.times > 1 and self.what != "restart":
            raise mistake(f"'times' is for restart, found {self.what}; leave it out", "times")
        for key, what in _OWN_KEYS.items():
            if getattr(self, key) is not None and self.what != what:
                raise mistake(f"'{key}' is for {what}, found {self.what}; leave it out", key)
        for key in ("command", "undo"):
            if self.what == COMMAND and getattr(self, key) is None:
                raise mistake(f"'command' needs '{key}': a line for the shell", "what")
        if self.seconds is None and self.what not in _LASTING:
            those = " and ".join(_LASTING)
            raise mistake(f"only {those} may last until all is stored, found {self.what}; give seconds", "seconds")
        if service_of(self.hits) == "kafka" and self.seconds is not None and self.seconds > _MOST_WITHOUT_KAFKA:
            text = f"{self.hits} cannot be gone for more than {_MOST_WITHOUT_KAFKA:g} s, found {self.seconds:g}"
            raise mistake(f"{text}: the load generator gives a record up after 30 s", "seconds")
        if self.at_seconds is not None and self.at_share is not None:
            raise mistake("at_seconds and at_share both say when; leave one of them out", "at_share")
        return self

    @property
    def hits(self) -> str:
        """Its target; empty for `none`."""
        return self.target or next(iter(_TARGETS.get(self.what, ())), "")

    @property
    def node(self) -> str | None:
        """The topology node that it affects, if it names one."""
        found = self.target is not None and self.what in OF_SERVICES and _NODE.fullmatch(self.target)
        return self.target if found else None

    @property
    def name(self) -> str:
        """Its name in tables and in cells' keys, as `kill worker` or `restart x20`."""
        if self.label is not None:
            return self.label
        if self.what == POISON:
            return f"poison {100 * self.bad_share:g} % {self.bad_records}"
        if self.what == DELAY:
            return f"delay {self.hits} {self.delay_ms:g} ms"
        if self.what == THROTTLE:
            return f"throttle {self.hits} {self.most_bytes_per_second / 1000:g} kB/s"
        if self.drops:
            return f"cut {self.hits} drop"
        if self.why is not None and self.why != "read only":
            return f"{self.what} {self.hits} {self.why}"
        hit = [self.hits] if self.hits in _SERVICES or self.node else []
        return " ".join([self.what, *hit, *([f"x{self.times}"] * (self.times > 1))])

    @property
    def bad_share(self) -> float:
        """Of poison: bad records per good record."""
        return _DEFAULT_POISON if self.share is None else self.share

    @property
    def bad_records(self) -> Poison:
        return self.records or "not json"

    @property
    def delay_ms(self) -> float:
        """Of delay: one-way delay."""
        return _DEFAULT_MILLISECONDS if self.milliseconds is None else self.milliseconds

    @property
    def most_bytes_per_second(self) -> int:
        """Of throttle: limit per connection and direction."""
        return self.bytes_per_second or _DEFAULT_BYTES_PER_SECOND

    @property
    def reason(self) -> Why:
        """Of refuse: why the sink rejects records."""
        return self.why or "read only"

    @property
    def drops(self) -> bool:
        """Of cut: whether connections stay open without data; else they are closed, and new ones refused."""
        return self.what == CUT and self.how == "drop"

    @property
    def most_seconds(self) -> float:
        """Maximum duration from its begin; for a fault that lasts until all is stored, only the fixed part."""
        return (self.seconds or 0.0) * self.times

    def begins_at(self, load_seconds: float) -> float:
        if self.at_seconds is not None:
            return self.at_seconds
        return load_seconds * self.share_before

    @property
    def share_before(self) -> float:
        """Share of the records after which it begins, without `at_seconds`."""
        return _DEFAULT_SHARE if self.at_share is None else self.at_share

    def applies_to(self, label: str) -> bool:
        return self.pipelines is None or label in self.pipelines
