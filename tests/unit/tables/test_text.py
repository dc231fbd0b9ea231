"""How tables and lines become text."""

from __future__ import annotations

from sinkbench.tables.text import new_table, plain_text, words


def test_names_and_words_begin_at_the_left_and_numbers_end_at_the_right() -> None:
    table = new_table("cell", "records/s", words("verdict"))
    table.add_row("a", "7", "ok")
    assert plain_text([table]).splitlines()[0] == "cell  records/s  verdict"
    assert plain_text([table]).splitlines()[2] == "a             7  ok"


def test_a_table_is_wider_rather_than_cut_where_no_width_is_given() -> None:
    # Users choose the names of cells.
    name = "n" * 200
    table = new_table("cell", "records/s")
    table.add_row(name, "7")
    assert name in plain_text([table])
    assert max(map(len, plain_text([table], 40).splitlines())) == 40


def test_lines_are_kept_whole_whatever_the_width_and_hold_no_markup() -> None:
    assert plain_text(["[bold]" + 30 * "word ", "", "end"], 20) == "[bold]" + (30 * "word ").rstrip() + "\n\nend\n"
