"""The verdict on what limits a trial, and a cell: which finding counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from sinkbench.analysis.words import percent
from sinkbench.bottleneck import rules
from sinkbench.bottleneck.evidence import Evidence
from sinkbench.bottleneck.rules import Finding, Rule
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
    if no rule applies, None without evidence."""
    if seen is None:
        return None
    found: list[Finding] = []
    for rank in ranks(of_sink):
        in_rank = [finding for rule in rank if (finding := rule(seen)) is not None]
        # The sort is stable: equal shares keep the order of the rules.
        found += sorted(in_rank, key=lambda finding: -finding.share)
    if not found:
        return Bottleneck(component=NOT_IDENTIFIED, cause=NOT_IDENTIFIED, evidence=_figures(seen))
    first, *others = found
    return Bottleneck(
        component=first.component,
        cause=first.cause,
        evidence=first.evidence,
        also=[f"{other.cause}: {other.evidence}" for other in others],
    )


def shared_cause(trials: Iterable[Bottleneck | None]) -> Bottleneck | None:
    """The most frequent verdict of a cell's trials (the earliest of equals), with its first evidence; None without
    any."""
    known = [each for each in trials if each is not None]
    if not known:
        return None
    ((cause, count),) = Counter((each.component, each.cause) for each in known).most_common(1)
    first = next(each for each in known if (each.component, each.cause) == cause)
    if count == len(known):
        return first
    return first.model_copy(update={"evidence": f"{first.evidence} (so in {count} of {len(known)} trials)"})


def _figures(seen: Evidence) -> str:
    shares = {
        "machine CPU": seen.machine_busy,
        "put": seen.levels.get("tasks_put_share"),
        "poll": seen.levels.get("tasks_poll_share"),
    }
    known = [f"{name} {percent(share)}" for name, share in shares.items() if share is not None]
    return ", ".join(known) or "the services show too little"
