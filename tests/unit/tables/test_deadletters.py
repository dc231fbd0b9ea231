"""The table of a dead letter queue."""

from sinkbench.analysis.deadletters import causes
from sinkbench.tables.deadletters import dead_letter_table
from tests.unit.analysis.test_deadletters import letter


def test_each_cause_has_a_row_and_a_record() -> None:
    said = {"stage": "TASK_PUT", "exception_class_name": "java.lang.RuntimeException", "exception_message": "no"}
    lines = dead_letter_table(causes([letter(4, b'{"a": 1}', **said), letter(5, b"{", **said)])).splitlines()
    assert lines[0].split() == ["connector", "stage", "records", "first", "from", "reason"]
    assert lines[2].split() == ["pg", "TASK_PUT", "2", "tides-2,", "offset", "4", "RuntimeException:", "no"]
    assert lines[3] == 'tides-2, offset 4: {"a": 1}'


def test_what_stands_in_brackets_is_shown_as_it_is() -> None:
    said = {"exception_class_name": "a.Refused", "exception_message": "[es/index] failed: [strict] [/doc]"}
    lines = dead_letter_table(causes([letter(4, b"[bold]", **said)])).splitlines()
    assert lines[2].endswith("Refused: [es/index] failed: [strict] [/doc]")
    assert lines[3] == "tides-2, offset 4: [bold]"


def test_what_is_no_text_is_shown_as_bytes_and_what_is_long_is_cut() -> None:
    shown = [
        dead_letter_table(causes([letter(1, value)])).splitlines()[-1].partition(": ")[2]
        for value in (b"\xff\x00", b"a\nb", b"x" * 100, None)
    ]
    assert shown == [r"b'\xff\x00'", r"b'a\nb'", "x" * 57 + "...", "a tombstone (no value)"]
