"""The verdict on what limits a trial, and a cell: which finding counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from sinkbench.analysis.words import percent
from sinkbench.bottleneck import rules
from sinkbench.bottleneck.evidence import Evidence
from sinkbench.bottleneck.rules import NEAR, Finding, Rule
from sinkbench.results import Bottleneck

NOT_IDENTIFIED = "not identified"


def ranks(of_sink: Sequence[Rule] = ()) -> tuple[tuple[Rule, ...], ...]:
    """All rules, with those of the sink, by descending rank; in a rank the largest share counts."""
    return (
        # None of them is fixed by what the others name.
        (rules.connections_used_up, rules.failed_tasks, rules.generator),
        # What the CPU is used for explains more than that it is used up.
        (rules.request_a_record,),
        # Without free CPU everything else waits for that reason.
        (rules.machine_saturated,),
        (
            rules.service_saturated,
            *of_sink,
            rules.idle_tasks,
            rules.absent_tasks,
            rules.uneven_records,
            rules.uneven_placement,
        ),
        # These are true of most of the above, and count only if nothing explains them.
        (rules.stalled,),
        (rules.waits_for_sink, rules.waits_for_records),
    )


def cause_of(seen: Evidence | None, of_sink: Sequence[Rule] = ()) -> Bottleneck | None:
    """The largest finding of the first rank that has one, with its evidence and the other findings; "not identified"
    if no rule applies, None without evidence. Near its threshold it and the next cause are both named."""
    if seen is None:
        return None
    found: list[Finding] = []
    for rank in ranks(of_sink):
        in_rank = [finding for rule in rank if (finding := rule(seen)) is not None]
        # The sort is stable: equal shares keep the order of the rules.
        found += sorted(in_rank, key=lambda finding: -finding.share)
    none = Finding(NOT_IDENTIFIED, NOT_IDENTIFIED, _figures(seen), 0.0)
    if all(finding.above < 0 for finding in found):
        found.append(none)
    first, *others = found
    undecided = first.above < NEAR and bool(others)
    # What the threshold of another rule does not reach decides nothing.
    also = [
        each
        for number, each in enumerate(others)
        if each is not none and (each.above >= 0 or (undecided and not number))
    ]
    return Bottleneck(
        component=first.component,
        cause=first.cause,
        or_component=others[0].component if undecided else "",
        or_cause=others[0].cause if undecided else "",
        evidence=first.evidence,
        also=[f"{other.cause}: {other.evidence}" for other in also],
    )


def shared_cause(trials: Iterable[Bottleneck | None]) -> Bottleneck | None:
    """The most frequent cause of a cell's trials (the earliest of equals), with its first evidence, and the second one
    if as many trials name it; None without any."""
    known = [each for each in trials if each is not None]
    if not known:
        return None
    named = Counter(cause for each in known for cause in causes_of(each))
    (cause, count), *rest = named.most_common(2)
    first = next((each for each in known if causes_of(each)[0] == cause), known[0])
    other = next((each for each, trials in rest if trials == count), ("", ""))
    text = first.evidence if count == len(known) else f"{first.evidence} (so in {count} of {len(known)} trials)"
    found = dict(zip(("component", "cause", "or_component", "or_cause"), (*cause, *other), strict=True))
    return first.model_copy(update={**found, "evidence": text})


def causes_of(found: Bottleneck) -> list[tuple[str, str]]:
    """Component and cause, and the other ones where the figures do not decide."""
    causes = [(found.component, found.cause), (found.or_component, found.or_cause)]
    return causes if found.or_cause else causes[:1]


def _figures(seen: Evidence) -> str:
    shares = {
        "machine CPU": seen.machine_busy,
        "put": seen.levels.get("tasks_put_share"),
        "poll": seen.levels.get("tasks_poll_share"),
    }
    known = [f"{name} {percent(share)}" for name, share in shares.items() if share is not None]
    return ", ".join(known) or "the services show too little"
