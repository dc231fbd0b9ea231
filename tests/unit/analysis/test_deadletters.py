"""What many dead letters have in common, and their table."""

from sinkbench.analysis.deadletters import PREFIX, DeadLetter, causes, one_of_each
from sinkbench.tables.deadletters import dead_letter_table


def letter(offset: int = 0, value: bytes | None = b"{}", **said: str) -> DeadLetter:
    about = {
        "topic": "tides",
        "partition": "2",
        "offset": str(offset),
        "connector.name": "pg",
        "stage": "VALUE_CONVERTER",
        "exception.class.name": "org.apache.kafka.connect.errors.DataException",
        "exception.message": "no JSON",
        **{name.replace("_", "."): text for name, text in said.items()},
    }
    headers = tuple((PREFIX + name, text.encode()) for name, text in about.items())
    return DeadLetter(b"k", value, (("own", b"1"), *headers))


def test_a_letter_says_where_it_is_from_and_why_it_failed() -> None:
    found = letter(7, exception_message="no JSON:\n  unexpected 'x'")
    assert (found.source, found.own_headers) == (("tides", 2, 7), [("own", b"1")])
    assert found.reason == "DataException: no JSON: unexpected 'x'"
    assert letter(partition="two").source is None


def test_the_reason_is_the_innermost_cause_that_says_something_and_not_what_it_is_wrapped_in() -> None:
    trace = "a.CamelExchangeException: Exchange[D8C9-02]\n\tat a.B.c(B.java:1)\n"
    trace += "Caused by: b.CompletionException: c.ElasticsearchException: not  allowed\n\tat a.B.c(B.java:1)\n"
    trace += "Caused by: c.ElasticsearchException: not  allowed\n\tat a.B.c(B.java:1)\n\t... 3 more\n"
    assert letter(exception_stacktrace=trace).reason == "ElasticsearchException: not allowed"
    assert letter(exception_stacktrace=trace + "Caused by: java.io.EOFException\n").reason.endswith(": not allowed")
    # The first one's message may have several lines, all of which are in a header of its own.
    assert letter(exception_stacktrace="a.DataException: no\n  JSON\n\tat a").reason == "DataException: no JSON"


def test_a_letter_without_connects_headers_says_nothing() -> None:
    found = DeadLetter(None, b"{", (("own", None),))
    assert (found.source, found.reason) == (None, "")
    assert len(causes([found])) == 1


def test_reasons_that_differ_in_numbers_and_names_alone_are_one_cause() -> None:
    messages = ("too large", "field 'v' at 17", "field 'w' at 4")
    found = causes([letter(number, exception_message=message) for number, message in enumerate(messages)])
    assert [(cause.reason, len(cause.letters)) for cause in found] == [
        ("DataException: field 'v' at 17", 2),
        ("DataException: too large", 1),
    ]
    # Connectors and stages have causes of their own.
    assert len(causes([letter(1), letter(2, stage="TASK_PUT"), letter(3, connector_name="es")])) == 3


def test_a_record_that_was_put_aside_twice_is_one_and_another_one_at_its_place_is_not() -> None:
    first, again, other = letter(1), letter(1, task_id="2"), letter(1, value=b"[]")
    assert one_of_each([first, again, letter(2), other]) == [first, letter(2), other]


def test_each_cause_has_a_row_and_a_record_in_which_what_stands_in_brackets_is_shown_as_it_is() -> None:
    said = {"stage": "TASK_PUT", "exception_class_name": "a.Refused"}
    said["exception_message"] = "[es/index] failed: [strict] [/doc]"
    lines = dead_letter_table(causes([letter(4, b'{"a": "[bold]"}', **said), letter(5, b"{", **said)])).splitlines()
    assert lines[0].split() == ["connector", "stage", "records", "first", "from", "reason"]
    row = "pg TASK_PUT 2 tides-2, offset 4 Refused: [es/index] failed: [strict] [/doc]"
    assert lines[2].split() == row.split()
    assert lines[3] == 'tides-2, offset 4: {"a": "[bold]"}'


def test_what_is_no_text_is_shown_as_bytes_and_what_is_long_is_cut() -> None:
    shown = [
        dead_letter_table(causes([letter(1, value)])).splitlines()[-1].partition(": ")[2]
        for value in (b"\xff\x00", b"a\nb", b"x" * 100, None)
    ]
    assert shown == [r"b'\xff\x00'", r"b'a\nb'", "x" * 57 + "...", "a tombstone (no value)"]
