"""The faults of a plan: what they affect, when, and for how long."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from sinkbench.plan.entries import Count, Seconds, Share
from sinkbench.topology import service_of
from sinkbench.yamlfile import Section, mistake

OfService = Literal["kill", "stop", "freeze", "isolate"]
OfSink = Literal["refuse", "fill", "promote"]
OfNetwork = Literal["delay", "cut", "throttle"]
OfConnector = Literal["restart", "pause", "rename", "join"]
What = Literal["none", OfService, OfSink, OfNetwork, OfConnector, "poison", "command"]
Poison = Literal["not json", "nul", "wrong type", "too large"]
Cut = Literal["reject", "drop"]
Why = Literal["read only", "no right", "no connection"]

NONE, REFUSE, FILL, POISON, COMMAND = "none", "refuse", "fill", "poison", "command"
PROMOTE = "promote"
DELAY, CUT, THROTTLE = "delay", "cut", "throttle"
WORKER, WORKERS, SINK, CONNECTOR = "worker", "workers", "sink", "connector"
ISOLATE = "isolate"
OF_SERVICES = get_args(OfService)
"""Faults of processes or containers, which require a stack started by sinkbench."""
OF_NETWORK = get_args(OfNetwork)
"""Faults of connections between the workers and the sink, by a proxy."""
_SERVICES = (WORKER, WORKERS, "kafka", SINK, "pgbouncer")
_NODE = re.compile(r"(postgres|elasticsearch)|(kafka|elasticsearch|postgres|connect)-[a-z0-9-]+")
# Possible targets of each fault; the first is the default.
_TARGETS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(OF_SERVICES, _SERVICES),
    **dict.fromkeys((*get_args(OfSink), *OF_NETWORK), (SINK,)),
    POISON: ("topic",),
    **dict.fromkeys(get_args(OfConnector), (CONNECTOR,)),
}
# Keys of single faults, and which faults have them.
_OWN_KEYS: Mapping[str, str] = {
    "times": "restart",
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

    what: What = Field(description="the fault")
    target: str | None = Field(
        default=None,
        description="worker: one that runs a task; workers: all, one after another; kafka; sink; pgbouncer; topic;"
        " connector; or a node, such as kafka-2. kafka and sink: the first node (default: what the fault can"
        " hit, if only one)",
    )
    at_seconds: Seconds | None = Field(
        default=None, description="begin after the first stored record; instead of at_share"
    )
    at_share: Share | None = Field(
        default=None,
        description="begin, as a share of all records, or of a backlog stored (default: 0.3, without at_seconds)",
    )
    seconds: Seconds | None = Field(
        default=5,
        description="duration, for workers of each; of restart: time between two restarts; of delay and throttle also"
        " null: until all is stored",
    )
    times: Annotated[Count, Field(le=1_000)] = Field(default=1, description="of restart: how often")
    share: Annotated[float, Field(gt=0, le=0.5)] | None = Field(
        default=None, description="of poison: bad records per good record (default: 0.01)"
    )
    records: Poison | None = Field(
        default=None,
        description="of poison; not json: truncated; nul: JSON with a NUL; wrong type: text instead of dates and"
        " numbers; too large: text too long to index (default: not json)",
    )
    milliseconds: Annotated[float, Field(ge=0, le=10_000, multiple_of=0.5)] | None = Field(
        default=None, description="of delay: one-way delay, in steps of 0.5; 0: a proxy without effect (default: 10)"
    )
    how: Cut | None = Field(
        default=None,
        description="of cut; reject: connections are closed and refused; drop: connections stay open without data"
        " (default: reject)",
    )
    why: Why | None = Field(
        default=None,
        description="of refuse; read only: transactions or index are read-only; no right: no permission to write; no"
        " connection: all are taken, and those of connectors closed (default: read only)",
    )
    bytes_per_second: Annotated[int, Field(ge=1_000, le=10**9, multiple_of=1_000)] | None = Field(
        default=None,
        description="of throttle: limit per connection and direction, in steps of 1,000 (default: 100,000)",
    )
    command: Annotated[str, Field(min_length=1, max_length=4_000)] | None = Field(
        default=None,
        description="of command: a shell line for the machine of sinkbench, at most 60 s; SINKBENCH_TOPIC,"
        " SINKBENCH_CONNECTOR and SINKBENCH_TARGET name what the trial uses",
    )
    undo: Annotated[str, Field(min_length=1, max_length=4_000)] | None = Field(
        default=None, description="of command: a shell line that undoes it; always runs"
    )
    patience_seconds: Seconds = Field(
        default=10,
        description="time before a FAILED task is restarted after the fault; 45 s more for a pipeline that is RUNNING"
        " without progress",
    )
    pipelines: tuple[str, ...] | None = Field(
        default=None, strict=False, min_length=1, description="labels of affected pipelines; null: all"
    )
    label: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$", max_length=40)] | None = Field(
        default=None, description="name in tables (default: what and target)"
    )

    @model_validator(mode="after")
    def _hits_what_it_can(self) -> Self:
        can = _TARGETS.get(self.what, ())
        if self.target is None and len(can) > 1:
            raise mistake(f"'{self.what}' needs 'target': {', '.join(can)}", "what")
        if self.target is not None and self.target not in can and self.node is None:
            nodes = " or a node, such as kafka-2" if self.what in OF_SERVICES else ""
            those = f"it can hit {', '.join(can)}{nodes}" if can else "leave 'target' out"
            raise mistake(f"'{self.what}' cannot hit '{self.target}'; {those}", "target")
        for key, what in _OWN_KEYS.items():
            given = self.times > 1 if key == "times" else getattr(self, key) is not None
            if given and self.what != what:
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
        return 0.01 if self.share is None else self.share

    @property
    def bad_records(self) -> Poison:
        return self.records or "not json"

    @property
    def delay_ms(self) -> float:
        """Of delay: one-way delay."""
        return 10.0 if self.milliseconds is None else self.milliseconds

    @property
    def most_bytes_per_second(self) -> int:
        """Of throttle: limit per connection and direction."""
        return self.bytes_per_second or 100_000

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
        return 0.3 if self.at_share is None else self.at_share

    def applies_to(self, label: str) -> bool:
        return self.pipelines is None or label in self.pipelines
