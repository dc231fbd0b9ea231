"""Rules about delivery: lost records, records sent one by one, and sinks that promise different durability. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sinkbench.analysis.deadletters import QUEUE
from sinkbench.doctor.configs import one_by_one
from sinkbench.doctor.diagnosis import Found, Rule
from sinkbench.doctor.facts import Area, Connector, Facts
from sinkbench.sinks.state import SinkState, Target

TOLERANCE = "errors.tolerance"


def request_a_record(facts: Facts) -> Iterator[Found]:
    for each in facts.in_question:
        if (setting := one_by_one(each.config)) is not None:
            yield Found(
                each.label,
                f"it sends a request for each record: {setting.partition(';')[0]}",
                "each record costs a round trip, and the work of a request in worker and sink; that, and not the"
                " database, is then what is measured",
                setting.partition("; ")[2],
            )


def no_dead_letter_queue(facts: Facts) -> Iterator[Found]:
    for each in facts.in_question:
        if each.config.get(TOLERANCE, "none").lower() != "all" or each.config.get(QUEUE):
            continue
        yield Found(
            each.label,
            f"{TOLERANCE} is all, and there is no {QUEUE}",
            "a record that cannot be read or stored is dropped silently, and its offset is committed",
            f"set {QUEUE}=dlq-{each.label.rpartition('/')[2]}, or {TOLERANCE}=none",
            invalidates=True,
        )


def durability_differs(facts: Facts) -> Iterator[Found]:
    found: dict[str, tuple[str, ...]] = {}
    copies: dict[str, int] = {}
    names = dict.fromkeys(each.sink for each in facts.in_question if each.sink in facts.sinks)
    for name in names or dict.fromkeys(facts.sinks):
        if name is None:
            continue
        state = facts.sinks[name]
        targets = _targets_of(facts, name, state)
        found[name] = (*state.unsafe, *dict.fromkeys(line for target in targets for line in target.unsafe))
        if state.database is not None:
            copies[name] = 1 + state.database.waited_for
        elif targets and targets[0].replicas is not None:
            most = len(state.cluster.nodes) - 1 if state.cluster is not None and state.cluster.nodes else 0
            copies[name] = 1 + min(targets[0].replicas, most)
    unsafe = {name: lines for name, lines in found.items() if lines}
    if unsafe and len(unsafe) < len(found):
        safe = " and ".join(name for name in found if name not in unsafe)
        for name, lines in unsafe.items():
            yield Found(
                name,
                f"{', '.join(lines)}; {safe} has what it acknowledges on its disk",
                "a sink that promises less is faster for that alone: the comparison is unfair",
                "set it as it is by default, or the other sink alike",
                invalidates=True,
            )
    if len(set(copies.values())) > 1:
        yield Found(
            " and ".join(copies),
            "copies of a record before it is acknowledged: "
            + ", ".join(f"{name} {count}" for name, count in copies.items()),
            "each copy costs a write and a round trip",
            "give all sinks equally many, or say so next to the figures",
        )


def _targets_of(facts: Facts, sink: str, state: SinkState) -> list[Target]:
    those: list[Connector] = [each for each in facts.in_question if each.sink == sink]
    named = [each.target for each in those if each.target is not None]
    return named or ([state.target] if state.target is not None else [])


RULES = (
    Rule("request-a-record", (), request_a_record),
    Rule("no-dead-letter-queue", (), no_dead_letter_queue),
    Rule("durability-differs", (Area.SINKS,), durability_differs),
)
