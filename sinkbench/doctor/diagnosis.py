"""The rules' findings, sorted, and what the rules could not check, with the reason. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sinkbench.doctor.facts import Area, Facts

DOCS = "docs/doctor.md"


@dataclass(frozen=True)
class Found:
    """A finding: its subject (a connector, a cell, a topic), the facts with figures, why they matter, and the fix. The
    fix is a command or a setting. `invalidates` says whether the figures of a race would be unusable.
    """

    subject: str
    what: str
    why: str
    fix: str
    invalidates: bool = False


@dataclass(frozen=True)
class NotSeen:
    """A rule lacks a fact that it needs; `why` is the reason."""

    why: str


def topics_not_seen(facts: Facts) -> Iterator[NotSeen]:
    """Reports running connectors that name their topics by a pattern."""
    for each in facts.running:
        if "topics.regex" in each.config:
            yield NotSeen(f"{each.name} names its topics by a pattern")


@dataclass(frozen=True)
class Rule:
    """One check. `code` is its heading in docs/doctor.md and never changes; `needs` are the areas that it must see.
    `passes` marks a finding that may be harmless for a moment, for example during a rebalance.
    """

    code: str
    needs: tuple[Area, ...]
    find: Callable[[Facts], Iterable[Found | NotSeen]]
    passes: bool = False


@dataclass(frozen=True)
class Finding:
    """What a rule found, with the rule's `code` and `passes`."""

    code: str
    found: Found
    passes: bool = False

    @property
    def docs(self) -> str:
        return f"{DOCS}#{self.code}"

    @property
    def key(self) -> tuple[str, str]:
        """Identifies the finding while its figures change."""
        return self.code, self.found.subject


@dataclass(frozen=True)
class Diagnosis:
    """Result of all rules: findings, the ones that invalidate a race first, and codes of the rules that were checked.
    `unseen` says by code why other rules were not checked.
    """

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    unseen: Mapping[str, str] = field(default_factory=dict)

    @property
    def invalid(self) -> bool:
        return any(each.found.invalidates for each in self.findings)


def diagnose(facts: Facts, rules: Sequence[Rule]) -> Diagnosis:
    """Runs every rule whose needs are met, and sorts the findings."""
    findings: list[Finding] = []
    checked: list[str] = []
    unseen: dict[str, str] = {}
    for rule in rules:
        missing = next((facts.unseen[area] for area in rule.needs if area in facts.unseen), None)
        if missing is not None:
            unseen[rule.code] = missing
            continue
        answers = list(rule.find(facts))
        findings += [Finding(rule.code, each, rule.passes) for each in answers if isinstance(each, Found)]
        reasons = list(dict.fromkeys(each.why for each in answers if isinstance(each, NotSeen)))
        if reasons:
            unseen[rule.code] = "; ".join(reasons)
        else:
            checked.append(rule.code)
    return Diagnosis(tuple(_sorted(findings)), tuple(checked), unseen)


def _sorted(findings: Sequence[Finding]) -> Iterator[Finding]:
    yield from (each for each in findings if each.found.invalidates)
    yield from (each for each in findings if not each.found.invalidates)
