"""The verdict on what limits a trial, and a cell: which of the findings counts."""

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
    """All rules, with those of the sink, the ranks that count most first.

    Within a rank the finding with the largest share counts.
    """
    return (
        # None of them is fixed by what the others name.
        (rules.connections_used_up, rules.failed_tasks, rules.generator),
        # What the CPU is spent on comes before that it is spent.
        (rules.request_a_record,),
        # With no CPU left, whatever else waits does so for that reason.
        (rules.machine_saturated,),
        (
            rules.service_saturated,
            *of_sink,
            rules.idle_tasks,
            rules.absent_tasks,
            rules.uneven_records,
            rules.uneven_placement,
        ),
        # These are true of most of the above, and left where nothing explains it.
        (rules.stalled,),
        (rules.waits_for_sink, rules.waits_for_records),
    )


def cause_of(seen: Evidence | None, of_sink: Sequence[Rule] = ()) -> Bottleneck | None:
    """What limits a trial: the largest finding of the first rank that has one.

    Args:
        seen: the trial's evidence; None if it has none.
        of_sink: the rules that its sink declares.

    Returns:
        The component, the cause and the figures that show it, with what else was found; "not identified", with the
        figures that there are, if no rule applies; None without evidence.
    """
    if seen is None:
        return None
    found: list[Finding] = []
    for rank in ranks(of_sink):
        in_rank = [finding for rule in rank if (finding := rule(seen)) is not None]
        # Where shares are equal, the order of the rules stays.
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
    """The verdict that most trials of a cell share, with the evidence of the first of these; None if none has one.

    Where only some share it, the evidence says how many. Of verdicts that equally many share, the earliest counts.
    """
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
