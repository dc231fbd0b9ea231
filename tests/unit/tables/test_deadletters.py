"""The table of a dead letter queue."""

from sinkbench.analysis.deadletters import PREFIX, DeadLetter, causes
from sinkbench.tables.deadletters import dead_letter_table


def letter(value: bytes | None, offset: int, **said: str) -> DeadLetter:
    headers = {"topic": "tides", "partition": "0", "offset": str(offset), "connector.name": "pg", "stage": "TASK_PUT"}
    return DeadLetter(None, value, tuple((PREFIX + name, text.encode()) for name, text in {**headers, **said}.items()))


def test_each_cause_has_a_row_and_a_record() -> None:
    said = {"exception.class.name": "java.lang.RuntimeException", "exception.message": "no"}
    lines = dead_letter_table(causes([letter(b'{"a": 1}', 4, **said), letter(b"{", 5, **said)])).splitlines()
    assert lines[0].split() == ["connector", "stage", "records", "first", "from", "reason"]
    assert lines[2].split() == ["pg", "TASK_PUT", "2", "tides-0,", "offset", "4", "RuntimeException:", "no"]
    assert lines[3] == 'tides-0, offset 4: {"a": 1}'


def test_what_stands_in_brackets_is_shown_as_it_is() -> None:
    said = {"exception.class.name": "a.Refused", "exception.message": "[es/index] failed: [strict] [/doc]"}
    lines = dead_letter_table(causes([letter(b"[bold]", 4, **said)])).splitlines()
    assert lines[2].endswith("Refused: [es/index] failed: [strict] [/doc]")
    assert lines[3] == "tides-0, offset 4: [bold]"


def test_what_is_no_text_is_shown_as_bytes_and_what_is_long_is_cut() -> None:
    shown = [
        dead_letter_table(causes([letter(value, 1)])).splitlines()[-1].partition(": ")[2]
        for value in (b"\xff\x00", b"a\nb", b"x" * 100, None)
    ]
    assert shown == [r"b'\xff\x00'", r"b'a\nb'", "x" * 57 + "...", "a tombstone (no value)"]
