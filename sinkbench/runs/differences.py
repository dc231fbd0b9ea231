"""Differences between two runs besides their figures: environment, plan and connector files."""

import json
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from pydantic import JsonValue

from sinkbench.analysis.words import few_of
from sinkbench.metrics.metric import find
from sinkbench.results import CellSummary
from sinkbench.runs.reader import StoredRun

ABSENT = "(none)"
Content = JsonValue | Mapping[str, JsonValue]
_SECRET = re.compile(r"password|passwd|secret|token|credential|api[._-]?key", re.IGNORECASE)
# In an address: user:secret@host, and ?password=secret.
_IN_ADDRESS = re.compile(r"(://[^/@:\s]*:|(?:password|secret|token)=)[^@&;\s]+(?=[@&;\s]|$)", re.IGNORECASE)
# The seed only orders trials, and prices apply to results: neither changes a measurement.
_OF_NO_EFFECT = {"seed", "prices"}
# What runs of one plan may differ in; the pipelines are what is compared.
_NO_CONDITIONS = _OF_NO_EFFECT | {"pipelines", "multiples", "trials", "until", "thresholds"}
_MACHINE = ("cpu_model", "cpu_count", "container.cpus", "stack", "topology.name")
_AS = ("{}", "{} cores", "cores allowed: {}", "{} stack", "{} topology")


@dataclass(frozen=True)
class Difference:
    """A key whose values differ, as text; `ABSENT` in a run without the key."""

    what: str
    a: str
    b: str

    @property
    def in_words(self) -> str:
        """As `plan trials was 3, is 5`."""
        return f"{self.what} was {self.a}, is {self.b}"


def differences(a: StoredRun, b: StoredRun) -> list[Difference]:
    """All keys of the environment, the plan and the connector files whose values differ. A connector file in only
    one run is one difference. Values of keys that look like secrets are hidden."""
    return [
        *between("environment", a.summary.environment, b.summary.environment),
        *between("plan", *(conditions(each.plan, _OF_NO_EFFECT | {"pipelines"}) for each in (a, b))),
        *of_named("plan pipelines", pipelines(a.plan), pipelines(b.plan)),
        *of_named("connectors", a.connectors, b.connectors),
    ]


def machine_of(environment: Mapping[str, JsonValue]) -> str:
    """What a run was measured on, in words that are equal for the same machine, stack and topology."""
    memory = environment.get("memory_bytes")
    # The kernel reserves slightly different amounts at each boot.
    size = [f"{memory / 1e9:.0f} GB"] if isinstance(memory, int | float) else []
    known = zip(_AS, (find(environment, key) for key in _MACHINE), strict=True)
    return ", ".join([*(text.format(value) for text, value in known if value is not None), *size])


def versions_of(environment: Mapping[str, JsonValue]) -> dict[str, str]:
    """The known versions of sinkbench, its libraries, the services and the connectors' classes, by name."""
    found = [each for key in ("versions", "plugins") if isinstance(each := environment.get(key), dict)]
    return {name: str(version) for each in found for name, version in each.items() if version is not None}


def conditions(plan: Mapping[str, JsonValue], without: Set[str] = _NO_CONDITIONS) -> dict[str, JsonValue]:
    return {key: value for key, value in plan.items() if key not in without}


def why_not_alike(a: StoredRun, b: StoredRun) -> str:
    """Why run A is no baseline of run B: another machine or another plan; empty if it is one."""
    machines = [machine_of(run.summary.environment) for run in (a, b)]
    if machines[0] != machines[1]:
        return f"was measured on another machine: {machines[0]}; this one is: {machines[1]}"
    found = [each.in_words for each in between("", conditions(a.plan), conditions(b.plan))]
    return f"is of another plan: {few_of(found)}" if found else ""


def record_differences(a: StoredRun, b: StoredRun) -> list[Difference]:
    """Differences in the keys of the plan's `load`; the user's own records are compared by digest, not by file name."""
    return list(between("", *map(_load, (a, b))))


def _load(run: StoredRun) -> dict[str, JsonValue]:
    """A plan's load without connection settings, form and acks; with the digest of the user's own records instead of
    their name, and the actual replicas if the plan does not set them."""
    found, facts = run.plan.get("load"), run.summary.records
    given = found if isinstance(found, dict) else {}
    load = {key: value for key, value in given.items() if key not in ("cluster", "form", "acks")}
    if facts is not None:
        load["records"] = f"sha256 {facts.sha256[:12]}"
    known = find(run.summary.environment, "durability.kafka.replication")
    return {**load, "replication": known} if load.get("replication") is None and known is not None else load


def durability_differences(a: StoredRun, b: StoredRun, one: CellSummary, other: CellSummary) -> list[Difference]:
    """Differences in the durability of Kafka and of the sink between two cells, as far as both runs know it."""
    found = between("", _durability(a, one), _durability(b, other))
    return [each for each in found if ABSENT not in (each.a, each.b)]


def _durability(run: StoredRun, cell: CellSummary) -> dict[str, JsonValue]:
    kafka = find(run.summary.environment, "durability.kafka") or {}
    found = {f"kafka {key}": value for key, value in kafka.items() if key not in ("acks", "replication")}
    if cell.durability is not None:
        # The texts know what is no setting, such as an UNLOGGED table.
        texts = {"of a stored record": cell.durability.text, "of a sent record": cell.durability.kafka}
        found |= {**cell.durability.settings, **texts}
    return {key: value for key, value in found.items() if value}


def pipelines(plan: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The entries of a plan by the labels of their cells."""
    found = plan.get("pipelines")
    entries = [entry for entry in (found if isinstance(found, list) else []) if isinstance(entry, dict)]
    return {str(entry.get("label") or entry.get("pipeline")): entry for entry in entries}


def of_named(what: str, a: Mapping[str, JsonValue], b: Mapping[str, JsonValue]) -> Iterator[Difference]:
    for name in dict.fromkeys([*a, *b]):
        if name in a and name in b:
            yield from between(f"{what} {name}", a[name], b[name])
        else:
            yield Difference(f"{what} {name}", *("listed" if name in each else ABSENT for each in (a, b)))


def between(what: str, a: Content, b: Content) -> Iterator[Difference]:
    """Differences between two contents; a nested key as `environment versions.connect`."""
    first, second = dict(flat(a)), dict(flat(b))
    for key in dict.fromkeys([*first, *second]):
        one, other = (
            None if each.get(key) is None else json.dumps(each[key], sort_keys=True) for each in (first, second)
        )
        if one != other:
            name = " ".join(filter(None, [what, key]))
            yield Difference(name, *(_shown(key, each) for each in (first, second)))


def flat(content: Content, separator: str = ".", above: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Each value that is no mapping, by its key with those above it."""
    if not isinstance(content, Mapping):
        yield above, content
        return
    for key, value in content.items():
        yield from flat(value, separator, f"{above}{separator}{key}" if above else str(key))


def _shown(key: str, values: Mapping[str, JsonValue]) -> str:
    if (value := values.get(key)) is None:
        return ABSENT
    if _SECRET.search(key):
        return "(not shown)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _IN_ADDRESS.sub(r"\1***", text)
