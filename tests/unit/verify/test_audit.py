"""An audit from its beginning to its end, on a topic and a target without services."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sinkbench.errors import UserError
from sinkbench.verify.audit import Audit
from sinkbench.verify.content import Asked, By, Extractor
from sinkbench.verify.ledger import Ledger
from sinkbench.verify.report import as_text, notes
from tests.support.filled import FilledTopic, Message

PARTITIONS, EACH = 2, 1_000
TABLE = {
    **{"__connect_topic": "text", "__connect_partition": "number", "__connect_offset": "number"},
    "payload": "document",
}


def document(part: int, offset: int, **changed: Any) -> dict[str, Any]:
    return {"id": offset * PARTITIONS + part, "place": "Zürich", "level": 1.5, **changed}


def messages(part: int, first: int, end: int) -> list[Message]:
    stored = {offset: (None, json.dumps(document(part, offset)).encode()) for offset in range(first, end)}
    return [Message((part, offset), each, offset * 36_000 + 1) for offset, each in stored.items()]


def row(part: int, offset: int, **changed: Any) -> dict[str, Any]:
    place = {"__connect_topic": "orders", "__connect_partition": part, "__connect_offset": offset}
    return {**place, "payload": document(part, offset, **changed)}


ROWS = [row(part, offset) for part in range(PARTITIONS) for offset in range(EACH)]
FAULTY = [*ROWS[:499], row(0, 499, level=1.6), *ROWS[500:1700], ROWS[3], *ROWS[1701:]]


def topic(**more: Any) -> FilledTopic:
    return FilledTopic(dict.fromkeys(range(PARTITIONS), EACH), messages, **more)


def target(rows: Sequence[dict[str, Any]]) -> Any:
    return SimpleNamespace(rows=lambda columns, at_once: iter([json.loads(json.dumps(rows))]))


def run(
    folder: Path, read: FilledTopic, there: Any, by: By, tell: Any = lambda *told: None, **more: Any
) -> tuple[dict[str, Any], list[str]]:
    extractor = Extractor(Asked("orders", "postgres:orders", by, TABLE, **more), set())
    with Ledger(str(folder / "audit.duckdb")) as ledger:
        audited: Any = read
        found = Audit(ledger, extractor, None, tell).run(audited, there, by, by_group=bool(read.by_group))
        return found, list(notes(ledger, extractor, found))


@pytest.mark.parametrize(
    ("by", "different", "more"), [("key", 1, {"key": "payload.id"}), ("position", 1, {}), ("value", 0, {})]
)
def test_what_was_planted_is_found_with_partition_and_hour(tmp_path: Path, by: By, different: int, more: Any) -> None:
    found, _ = run(tmp_path, topic(), target(FAULTY), by, **more)
    assert (found["records"], found["rows"]) == (2000, 2000)
    # By value, an altered record is missing, and its row is unknown.
    assert (found["missing"], found["doubled"], found["different"]) == (2 - different, 1, different)
    assert found["unknown"] == 1 - different
    assert {"partition": 1, "offset": 700} in found["examples"]["missing"]
    assert found["examples"]["doubled"] == [{"partition": 0, "offset": 3}]
    hours = {each["hour"]: each["missing"] + each["different"] for each in found["hours"]}
    assert {hour for hour, faults in hours.items() if faults} == {"1970-01-01 04:00", "1970-01-01 07:00"}
    assert len(hours) == 10
    text = as_text({**found, "notes": []})
    assert "doubled, as partition-offset: 0-3" in text
    assert "1970-01-01 07:00      200" in text


@pytest.mark.parametrize("by", ["key", "position", "value"])
def test_a_sink_that_has_everything_has_no_fault(tmp_path: Path, by: By) -> None:
    found, said = run(tmp_path, topic(), target(ROWS[::-1]), by, **({"key": "payload.id"} if by == "key" else {}))
    assert [found[fault] for fault in ("missing", "doubled", "different", "unknown")] == [0, 0, 0, 0]
    assert said == []


def test_what_retention_has_deleted_is_not_called_missing(tmp_path: Path) -> None:
    found, said = run(tmp_path, topic(starts={0: 100, 1: 40}), target(ROWS[50:]), "position")
    assert (found["missing"], found["expired"], found["unknown"], found["records"]) == (0, 90, 0, 1860)
    assert said[0] == "140 offsets are below the log's start: what was deleted is not called missing"


def test_only_what_the_group_has_committed_must_be_stored(tmp_path: Path) -> None:
    found, said = run(tmp_path, topic(), target(ROWS[:1900]), "position")
    assert (found["missing"], found["behind"]) == (100, 100)
    assert "--group" in said[0]
    found, _ = run(tmp_path, topic(by_group={0: EACH, 1: 900}), target(ROWS[:1910]), "position", topic_key="another")
    assert (found["missing"], found["unknown"], found["records"]) == (100, 0, 2000)


def test_an_interrupted_audit_goes_on_where_it_was(tmp_path: Path) -> None:
    """It is interrupted in the topic, then in the target."""
    first, second, third = topic(), topic(), topic()

    def stop(at: str) -> Any:
        def tell(what: str, read: int, of: int | None) -> None:
            if what == at and read > EACH:
                raise KeyboardInterrupt

        return tell

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sinkbench.verify.ledger.AT_ONCE", 1)
        for read, at in ((first, "topic"), (second, "target")):
            with pytest.raises(KeyboardInterrupt):
                run(tmp_path, read, target(FAULTY), "position", tell=stop(at))
        found, _ = run(tmp_path, third, target(FAULTY), "position")
    assert (first.read, second.read, third.read) == ([(0, 0), (0, 500), (1, 0)], [(1, 0), (1, 500)], [])
    assert (found["missing"], found["doubled"], found["different"]) == (1, 1, 1)


def test_a_key_that_no_record_has_ends_the_audit_with_the_nearest_member(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the topic: none of 500 records has the key; did you mean 'place'\?"):
        run(tmp_path, topic(), target(ROWS), "key", key="payload.plaze")
