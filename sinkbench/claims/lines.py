"""Verdicts as a table of at most 100 columns, with their totals and what would decide more of them."""

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import zip_longest

from sinkbench.analysis.words import counted
from sinkbench.claims.verdict import Outcome, Verdict

_WIDTHS = (12, 35, 49)
_GAP = "  "


def table(verdicts: Sequence[Verdict], *, whole: bool = False) -> list[str]:
    """The claims by verdict: number, what was published, and what was measured, or why none can be told. Those that no
    run can tell have their reasons only if the table is to be `whole`."""
    lines = []
    for outcome in Outcome:
        own = [each for each in verdicts if each.outcome is outcome]
        told = [each for each in own if whole or each.claim.shape is not None]
        lines += [f"{outcome}: {len(own)}".capitalize()] if own else []
        lines += [line for each in told for line in _folded(each)]
        if names := [each.claim.short for each in own if each not in told]:
            lines += textwrap.wrap(f"No run can tell {', '.join(names)}; with such a name, the reason is shown.", 100)
    return lines


def totals(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """How many claims have each verdict."""
    counts = Counter(each.outcome for each in verdicts)
    return {outcome.value: counts[outcome] for outcome in Outcome}


def commands(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """How many claims each command would decide."""
    return dict(Counter(each.command for each in verdicts if each.command is not None))


def last_lines(verdicts: Sequence[Verdict], lasts: Callable[[Verdict], str] = lambda missing: "") -> list[str]:
    """The totals, then a line for each command, if runs are missing; `lasts` says for how long, as `, about 9 min`."""
    shares = ", ".join(f"{count} {outcome}" for outcome, count in totals(verdicts).items())
    by_command = {each.command: each for each in verdicts}
    lines = [
        f"  {command}    # {counted(claims, 'claim')}{lasts(by_command[command])}"
        for command, claims in commands(verdicts).items()
    ]
    return [f"{counted(len(verdicts), 'claim')}: {shares}", *(["Runs that are missing:", *lines] if lines else [])]


def row_of(found: Verdict) -> tuple[str, str, str, str]:
    """The claim, what was published, what was measured (empty if nothing was), and the verdict."""
    claim = found.claim
    published = claim.published if claim.contradiction is None else f"{claim.published} (but: {claim.contradiction})"
    said = f"{found.outcome}{f': {found.why}' if found.why else ''}"
    run = [] if found.run is None else [f"run {found.run}"]
    return claim.name, published, ", ".join(filter(None, ["; ".join(found.measured), *run])), said


def _folded(found: Verdict) -> list[str]:
    published, said = row_of(found)[1], "; ".join([*found.measured, *([found.why] if found.why else [])])
    texts = (found.claim.short, published, said)
    # Names and ranges stay whole.
    wrap = partial(textwrap.wrap, break_on_hyphens=False)
    cells = [wrap(text, width) for text, width in zip(texts, _WIDTHS, strict=True)]
    lines = zip_longest(*cells, fillvalue="")
    return [_GAP.join(f"{text:<{width}}" for text, width in zip(line, _WIDTHS, strict=True)).rstrip() for line in lines]
