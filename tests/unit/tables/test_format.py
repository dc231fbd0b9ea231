"""How numbers, at the edges where their format changes, tables and lines become text."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Column

from sinkbench.analysis.words import NOT_MEASURED, milliseconds, money, percent, tenths, times, whole
from sinkbench.tables.text import new_table, plain_text, words


@pytest.mark.parametrize(
    ("shown", "as_text"),
    [
        (whole(12_345.4), "12,345"),
        (whole(-0.2), "0"),
        (whole(None), NOT_MEASURED),
        (whole(math.nan), NOT_MEASURED),
        (tenths(1_234.56), "1234.6"),
        (tenths(9.44, 9.5), "9.4"),
        (tenths(9.5, 9.5), "10"),
        (tenths(None), NOT_MEASURED),
        (times(99.94), "99.9"),
        (times(99.95), "100"),
        (milliseconds(0.994), "0.99"),
        (milliseconds(1), "1.0"),
        (milliseconds(99.5), "100"),
        (milliseconds(None), NOT_MEASURED),
        (percent(0.0994), "9.9 %"),
        (percent(0.0995), "10 %"),
        (percent(0), "0.0 %"),
        *((money(None), "-"), (money(0.0), "0.00"), (money(1_234.5), "1,234.50"), (money(1.0), "1.00")),
        *((money(0.123456), "0.123"), (money(0.01), "0.0100"), (money(0.000012345), "0.0000123")),
    ],
)
def test_a_number_has_as_many_digits_as_tell_something(shown: str, as_text: str) -> None:
    assert shown == as_text


def test_a_table_is_wider_rather_than_cut_where_no_width_is_given() -> None:
    # Users choose the names of cells.
    name = "n" * 200
    table = new_table("cell", "records/s")
    table.add_row(name, "7")
    assert name in plain_text([table])
    assert max(map(len, plain_text([table], 40).splitlines())) == 40


@given(
    name=st.integers(1, 60),
    cells=st.lists(st.one_of(st.none(), st.integers(1, 20)), min_size=1, max_size=9),
    least=st.sampled_from([1, 11, 14]),
    width=st.integers(20, 160),
)
def test_a_number_or_a_verdict_is_never_cut(name: int, cells: list[int | None], least: int, width: int) -> None:
    folded = "connect:12 elasticsearch:34"
    values = {n: f"{n}{'v' * letters}" for n, letters in enumerate(cells) if letters is not None}
    columns = [
        words("h") if n in values else Column("CPU s", overflow="fold", min_width=least) for n in range(len(cells))
    ]
    table = new_table("cell", *columns)
    table.add_row("n" * name, *(values.get(n, folded) for n in range(len(cells))))
    told = plain_text([table], width)
    assert all(value in told for value in values.values())
    assert max(map(len, told.splitlines())) <= max(width, 30 + sum(2 + (letters or least) + 5 for letters in cells))


def test_lines_are_kept_whole_whatever_the_width_and_hold_no_markup() -> None:
    assert plain_text(["[bold]" + 30 * "word ", "", "end"], 20) == "[bold]" + (30 * "word ").rstrip() + "\n\nend\n"
