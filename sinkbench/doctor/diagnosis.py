"""What the rules find, sorted; and what they could not look at, with the reason. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sinkbench.doctor.facts import Area, Facts

__all__ = ["DOCS", "Diagnosis", "Finding", "Found", "NotSeen", "Rule", "diagnose", "topics_not_seen"]

DOCS = "docs/doctor.md"


@dataclass(frozen=True)
class Found:
    """What a rule has found.

    Attributes:
        subject: what it is about: a connector, a cell, a topic, an index ...
        what: what is the matter, with the figures.
        why: why that matters.
        fix: the command or the setting that corrects it.
        invalidates: whether the figures of a race could not be used; else it is worth knowing.
    """

    subject: str
    what: str
    why: str
    fix: str
    invalidates: bool = False


@dataclass(frozen=True)
class NotSeen:
    """That a rule lacks what it needs to know about a subject, and why."""

    why: str


def topics_not_seen(facts: Facts) -> Iterator[NotSeen]:
    """That connectors which run name their topics by a pattern."""
    for each in facts.running:
        if "topics.regex" in each.config:
            yield NotSeen(f"{each.name} names its topics by a pattern")


@dataclass(frozen=True)
class Rule:
    """One thing that is checked.

    Attributes:
        code: its name, always the same, which is its heading in docs/doctor.md.
        needs: what must have been seen.
        find: what it finds.
        passes: whether it may be so for a moment with nothing being wrong, as while Connect deals out tasks.
    """

    code: str
    needs: tuple[Area, ...]
    find: Callable[[Facts], Iterable[Found | NotSeen]]
    passes: bool = False


@dataclass(frozen=True)
class Finding:
    """Something that a rule has found, with the rule's code, and whether it may pass; see `Rule`."""

    code: str
    found: Found
    passes: bool = False

    @property
    def docs(self) -> str:
        """Where it is explained."""
        return f"{DOCS}#{self.code}"

    @property
    def key(self) -> tuple[str, str]:
        """What stays the same while the figures change."""
        return self.code, self.found.subject


@dataclass(frozen=True)
class Diagnosis:
    """What came of all rules.

    Attributes:
        findings: those that invalidate a race first.
        checked: codes of the rules that saw all that they need.
        unseen: why the others did not, by code.
    """

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    unseen: Mapping[str, str] = field(default_factory=dict)

    @property
    def invalid(self) -> bool:
        """Whether something would invalidate a race."""
        return any(each.found.invalidates for each in self.findings)


def diagnose(facts: Facts, rules: Sequence[Rule]) -> Diagnosis:
    """Asks every rule that has what it needs."""
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
