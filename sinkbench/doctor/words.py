"""A diagnosis as text, and as plain values for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sinkbench.doctor.diagnosis import Diagnosis, Finding

INVALID, KNOWING = "invalidates a race", "worth knowing"


def lines(diagnosis: Diagnosis) -> Iterator[str]:
    """The whole diagnosis as text: what invalidates a race first, then what was checked, and what was not and why."""
    for finding in diagnosis.findings:
        yield from finding_lines(finding)
        yield ""
    invalid = sum(each.found.invalidates for each in diagnosis.findings)
    counts = {INVALID: invalid, KNOWING: len(diagnosis.findings) - invalid}
    came_of_it = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing found"
    rules = len(diagnosis.checked)
    yield f"{rules} of {rules + len(diagnosis.unseen)} rules saw all that they need: {came_of_it}"
    for why, codes in _by_reason(diagnosis.unseen).items():
        yield f"not checked: {', '.join(codes)}: {why}"


def finding_lines(finding: Finding) -> Iterator[str]:
    found = finding.found
    yield f"{INVALID if found.invalidates else KNOWING}: {found.subject}: {found.what}"
    yield f"    why: {found.why}"
    yield f"    fix: {found.fix}"
    yield f"    {finding.docs}"


def _by_reason(unseen: Mapping[str, str]) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for code, why in unseen.items():
        reasons.setdefault(why, []).append(code)
    return reasons


def changes_since(before: Diagnosis, after: Diagnosis) -> tuple[list[Finding], list[Finding], list[str]]:
    """New findings, findings that are gone, and lines about rules that can no longer be checked or can be again. A
    finding is the same if only its figures have changed.
    """
    was, now = _by_key(before.findings), _by_key(after.findings)
    new = [each for key, each in now.items() if key not in was]
    # A finding that is no longer checked may still be there.
    gone = [each for key, each in was.items() if key not in now and each.code not in after.unseen]
    lost = {code: why for code, why in after.unseen.items() if code not in before.unseen}
    told = [f"not checked any more: {', '.join(codes)}: {why}" for why, codes in _by_reason(lost).items()]
    back = [code for code in before.unseen if code not in after.unseen]
    return new, gone, [*told, *([f"checked again: {', '.join(back)}"] if back else [])]


def that_stays(before: Diagnosis, after: Diagnosis) -> Diagnosis:
    """`after` without findings that may pass and were not in `before`."""
    was = _by_key(before.findings)
    return replace(after, findings=tuple(each for each in after.findings if not each.passes or each.key in was))


def _by_key(findings: Iterable[Finding]) -> dict[tuple[str, str], Finding]:
    return {each.key: each for each in findings}


def as_values(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as plain values for a program."""
    return {
        "invalid": diagnosis.invalid,
        "findings": [
            {
                "code": each.code,
                "invalidates": each.found.invalidates,
                "subject": each.found.subject,
                "what": each.found.what,
                "why": each.found.why,
                "fix": each.found.fix,
                "docs": each.docs,
            }
            for each in diagnosis.findings
        ],
        "checked": list(diagnosis.checked),
        "not_checked": dict(diagnosis.unseen),
    }
