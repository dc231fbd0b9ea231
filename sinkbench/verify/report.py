"""The result of an audit, for a person."""

from collections.abc import Iterator
from typing import Any

from sinkbench.analysis.words import few_of
from sinkbench.tables.text import new_table, plain_text
from sinkbench.verify.content import NO_KEY, NOT_COMPARED, OTHER_TOPICS, Extractor
from sinkbench.verify.ledger import FAULTS, Ledger

MOST_SLOTS = 24
FIGURES = ("records", *FAULTS)


def as_text(found: dict[str, Any]) -> str:
    """A summary, the partitions and hours with faults, and what `notes` has."""
    parts: list[Any] = [f"{found['rows']:,} rows; " + ", ".join(f"{found[name]:,} {name}" for name in FIGURES)]
    for head, slots in (("partition", found["partitions"]), ("hour", found["hours"])):
        if rows := [each for each in slots if any(each[fault] for fault in FAULTS)]:
            cells = [(str(each[head]), *(f"{each[name]:,}" for name in FIGURES)) for each in rows[:MOST_SLOTS]]
            parts += ["", new_table(head, *FIGURES, rows=cells)]
        if len(rows) > MOST_SLOTS:
            parts.append(f"and {len(rows) - MOST_SLOTS:,} more: --format json")
    for fault, places in found["examples"].items():
        if places:
            listed = [f"{each['partition']}-{each['offset']}" for each in places]
            parts.append(f"{fault}, as partition-offset: {few_of(listed, len(listed), found[fault])}")
    return plain_text([*parts, *found["notes"]])


def notes(ledger: Ledger, extractor: Extractor, found: dict[str, Any]) -> Iterator[str]:
    """What a reader must know about the figures."""
    of_topic, of_rows = ledger.recall("records", {}), ledger.recall("rows", {})
    start = sum(start for start, _, _ in ledger.parts().values())
    counted = {
        "missing ones are behind the last stored one of their partition: not stored yet? see --group": found["behind"],
        "different ones end with a tombstone: the connector has not deleted them": found["undeleted"],
        "keys have as many rows as records; is every record kept? see --position and --value": found["several"]
        if found["doubled"]
        else 0,
        "offsets are below the log's start: what was deleted is not called missing": start,
        "rows of deleted records": found["expired"],
        f"rows of no record that the topic has{' any more' if start else ''}": found["unknown"],
        "records without the key or a value: not compared": of_topic.get(NO_KEY),
        "rows without the key or a value: not compared": of_rows.get(NO_KEY),
        "rows of other topics": of_rows.get(OTHER_TOPICS),
        "records whose content is not JSON, text or a row: only counted": of_topic.get(NOT_COMPARED),
        "rows whose content is not JSON or text: only counted": of_rows.get(NOT_COMPARED),
    }
    yield from (f"{count:,} {what}" for what, count in counted.items() if count)
    compared, names, added = extractor.compared, set(ledger.recall("names", [])), ledger.recall("added", [])
    if compared is not None:
        yield f"compared columns: {few_of(sorted(names & compared.keys()), 12) or 'none; see --document'}"
    for what, left_out in (("topic", names - (names if compared is None else compared.keys())), ("target", added)):
        if left_out:
            yield f"members only in the {what}, not compared: {few_of(sorted(left_out), 12)}"
