"""The rules' findings, sorted, and what the rules could not check; as text, and as plain values. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sinkbench.doctor.facts import Area, Facts

DOCS = "docs/doctor.md"
INVALID, KNOWING = "invalidates a race", "worth knowing"


@dataclass(frozen=True)
class Found:
    """A finding: its subject (a connector, a cell, a topic), the facts with figures, why they matter, and the fix, a
    command or a setting. `invalidates` says whether the figures of a race would be unusable; `rule` is what found it.
    """

    subject: str
    what: str
    why: str
    fix: str
    invalidates: bool = False
    rule: Rule | None = None

    @property
    def code(self) -> str:
        return "" if self.rule is None else self.rule.code

    @property
    def docs(self) -> str:
        return f"{DOCS}#{self.code}"

    @property
    def key(self) -> tuple[str, str]:
        """Identifies the finding while its figures change."""
        return self.code, self.subject


@dataclass(frozen=True)
class NotSeen:
    """A rule lacks a fact that it needs; `why` is the reason."""

    why: str


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
class Diagnosis:
    """Result of all rules: findings, the ones that invalidate a race first, and codes of the rules that were checked.
    `unseen` says by code why other rules were not checked.
    """

    findings: tuple[Found, ...]
    checked: tuple[str, ...]
    unseen: Mapping[str, str] = field(default_factory=dict)

    @property
    def invalid(self) -> bool:
        return any(each.invalidates for each in self.findings)


def diagnose(facts: Facts, rules: Sequence[Rule]) -> Diagnosis:
    """Runs every rule whose needs are met, and sorts the findings."""
    findings: list[Found] = []
    unseen: dict[str, str] = {}
    for rule in rules:
        missing = next((facts.unseen[area] for area in rule.needs if area in facts.unseen), None)
        answers = list(rule.find(facts)) if missing is None else [NotSeen(missing)]
        findings += [replace(each, rule=rule) for each in answers if isinstance(each, Found)]
        if reasons := dict.fromkeys(each.why for each in answers if isinstance(each, NotSeen)):
            unseen[rule.code] = "; ".join(reasons)
    findings.sort(key=lambda each: not each.invalidates)
    return Diagnosis(tuple(findings), tuple(rule.code for rule in rules if rule.code not in unseen), unseen)


def lines(diagnosis: Diagnosis) -> Iterator[str]:
    """The whole diagnosis as text: what invalidates a race first, then what was checked, and what was not and why."""
    for finding in diagnosis.findings:
        yield from finding_lines(finding)
        yield ""
    invalid = sum(each.invalidates for each in diagnosis.findings)
    counts = {INVALID: invalid, KNOWING: len(diagnosis.findings) - invalid}
    came_of_it = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing found"
    rules = len(diagnosis.checked)
    yield f"{rules} of {rules + len(diagnosis.unseen)} rules saw all that they need: {came_of_it}"
    for why, codes in _by_reason(diagnosis.unseen).items():
        yield f"not checked: {', '.join(codes)}: {why}"


def finding_lines(found: Found) -> Iterator[str]:
    yield f"{INVALID if found.invalidates else KNOWING}: {found.subject}: {found.what}"
    yield f"    why: {found.why}"
    yield f"    fix: {found.fix}"
    yield f"    {found.docs}"


def _by_reason(unseen: Mapping[str, str]) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for code, why in unseen.items():
        reasons.setdefault(why, []).append(code)
    return reasons


def changes_since(before: Diagnosis, after: Diagnosis) -> tuple[list[Found], list[Found], list[str]]:
    """New findings, findings that are gone, and lines about rules that can no longer be checked or can be again. A
    finding is the same if only its figures have changed.
    """
    was, now = ({each.key: each for each in seen.findings} for seen in (before, after))
    new = [each for key, each in now.items() if key not in was]
    # A finding that is no longer checked may still be there.
    gone = [each for key, each in was.items() if key not in now and each.code not in after.unseen]
    lost = {code: why for code, why in after.unseen.items() if code not in before.unseen}
    told = [f"not checked any more: {', '.join(codes)}: {why}" for why, codes in _by_reason(lost).items()]
    back = [code for code in before.unseen if code not in after.unseen]
    return new, gone, [*told, *([f"checked again: {', '.join(back)}"] if back else [])]


def that_stays(before: Diagnosis, after: Diagnosis) -> Diagnosis:
    """`after` without findings that may pass and were not in `before`."""
    was = {each.key for each in before.findings}
    stays = (each for each in after.findings if each.rule is None or not each.rule.passes or each.key in was)
    return replace(after, findings=tuple(stays))


def as_values(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as plain values for a program."""
    shown = ("code", "invalidates", "subject", "what", "why", "fix", "docs")
    return {
        "invalid": diagnosis.invalid,
        "findings": [{name: getattr(each, name) for name in shown} for each in diagnosis.findings],
        "checked": list(diagnosis.checked),
        "not_checked": dict(diagnosis.unseen),
    }
