"""What a schema file has made or removed elsewhere, and which functions name what has another name in a trial."""

from __future__ import annotations

import pytest

from sinkbench.sinks.postgres.schema import difference, names_one_of

TABLE = {("table", 20_001): "public.tides"}
NAMES = {"tides", "tides_id_seq"}


def test_what_was_there_before_is_no_difference() -> None:
    assert difference({}, {}) is None
    assert difference(TABLE, TABLE) is None


def test_what_was_made_is_named_and_so_is_what_was_removed() -> None:
    assert (difference({}, TABLE) or "").startswith("it makes table public.tides outside of the trial's own schema")
    assert difference(TABLE, {}) == "it removes table public.tides, which it has not made; leave that out"


def test_one_that_was_made_anew_under_its_name_was_removed() -> None:
    assert (difference(TABLE, {("table", 20_002): "public.tides"}) or "").startswith("it removes table public.tides")


def test_many_are_a_few_and_a_number() -> None:
    many = {("type", 20_000 + number): f"public.t{number}" for number in range(7)}
    assert "makes type public.t0, type public.t1, type public.t2 and 4 more outside" in (difference({}, many) or "")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("SELECT count(*) FROM tides", "tides"),
        ('SELECT count(*) FROM public."Tides";', "tides"),
        ("SELECT currval('tides_id_seq')", "tides_id_seq"),
        ("SELECT count(*) FROM my_tides", None),
        ("SELECT count(*) FROM tides_of_march", None),
        ("-- of tides\nSELECT 1 /* all\ntides */", None),
        ("", None),
    ],
)
def test_a_function_that_names_the_table_is_found(source: str, found: str | None) -> None:
    assert names_one_of(source, NAMES) == found
