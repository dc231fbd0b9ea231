"""The rows of a table, CSV or Parquet, each made a JSON object once."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import duckdb

from loadgen.dataset.formats import MOST_RECORD_BYTES, Found, plain_chunks
from loadgen.errors import DatasetError

__all__ = ["parquet_rows", "rows"]

DELIMITERS = ",;\t|"
# What JSON takes for a number. A text such as 007 is none, and stays what it is.
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
ROWS_AT_ONCE = 1_000
# An alias that no column has: it would be taken for that column.
ROW = '"the row of sinkbench"'


class _Column(Enum):
    """What every filled cell of a column is."""

    NUMBER = "number"
    BOOLEAN = "boolean"
    TEXT = "text"


def rows(path: Path, most_bytes: int) -> Iterator[Found]:
    """The rows of a file of comma-separated values (or with ; tab or | between them) as JSON objects.

    The first line has the names. A column whose cells are all numbers as JSON writes them, or all true or false, has
    these; all else is text. An empty cell is null. What a column is, is told by the first `most_bytes` of the file.

    Raises DatasetError if the file cannot be read, or a row, which is named with its line, has other columns.
    """
    kinds: list[_Column | None] = []
    read = 0
    for _, cells in _cells(path):
        kinds = kinds or [None] * len(cells)
        kinds = [_kind(kind, cell) for kind, cell in zip(kinds, cells, strict=True)]
        read += sum(map(len, cells))
        if read > most_bytes:
            break
    names = _names(path)
    for line, cells in _cells(path):
        members = (
            f"{json.dumps(name, ensure_ascii=False)}: {_value(kind, cell)}"
            for name, kind, cell in zip(names, kinds, cells, strict=True)
        )
        yield Found(f"{path}, line {line}", f"{{{', '.join(members)}}}".encode("utf-8", "replace"))


def _kind(before: _Column | None, cell: str) -> _Column | None:
    if not cell or before is _Column.TEXT:
        return before
    found = _Column.NUMBER if NUMBER.fullmatch(cell) else _Column.BOOLEAN if cell in ("true", "false") else _Column.TEXT
    return found if before in (None, found) else _Column.TEXT


def _value(kind: _Column | None, cell: str) -> str:
    if not cell:
        return "null"
    # Beyond the bytes that told what the column is, a cell may be something else.
    if kind in (_Column.NUMBER, _Column.BOOLEAN) and _kind(None, cell) is kind:
        return cell
    return json.dumps(cell, ensure_ascii=False)


def _names(path: Path) -> list[str]:
    """The names of the columns. Raises DatasetError if one is missing, or two are alike."""
    for _, names in _all_cells(path):
        if len(set(names)) < len(names) or not all(names):
            raise DatasetError(f"{path}, line 1: a column has no name, or two have the same; the first line names them")
        return names
    raise DatasetError(f"{path}: is empty; its first line must name the columns")


def _cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows after the first, each with its line."""
    every = _all_cells(path)
    width = len(next(every, (0, []))[1])
    for line, cells in every:
        # An empty line is no row.
        if not cells:
            continue
        if len(cells) != width:
            raise DatasetError(
                f"{path}, line {line}: has {len(cells)} columns, the first line has {width}; mend it"
                " (a file that was cut off ends so)"
            )
        yield line, cells


def _all_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(MOST_RECORD_BYTES)
    texts = _lines_of_text(path)
    first = next(texts, "")
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(_with_first(first, texts), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DatasetError(
                f"{path}, line {line}: is no row ({error}), or the file ends in the middle of it; mend it"
            ) from None
        yield line, cells


def _with_first(first: str, rest: Iterable[str]) -> Iterator[str]:
    yield first
    yield from rest


def _lines_of_text(path: Path) -> Iterator[str]:
    number, rest = 1, b""
    for chunk in plain_chunks(path):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield _text(path, number, line + b"\n")
            number += 1
        if len(rest) > MOST_RECORD_BYTES:
            raise DatasetError(f"{path}, line {number}: has more than {MOST_RECORD_BYTES:,} bytes; no record may be")
    if rest:
        yield _text(path, number, rest)


def _text(path: Path, number: int, line: bytes) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError:
        raise DatasetError(f"{path}, line {number}: is not UTF-8; save the file as such") from None


def parquet_rows(path: Path) -> Iterator[Found]:
    """The rows of a Parquet file as JSON objects, as DuckDB writes them. Raises DatasetError if it cannot be read."""
    # DuckDB would fetch an extension for what it cannot do by itself, and takes a name with brackets for a pattern.
    config: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with path.open("rb") as file, duckdb.connect(":memory:", config=config) as connection:
        query = f"SELECT to_json({ROW})::VARCHAR FROM read_parquet(?) AS {ROW}"  # noqa: S608  no text of others
        number = 0
        try:
            connection.execute("SET threads TO 1")
            answer = connection.execute(query, [f"/proc/{os.getpid()}/fd/{file.fileno()}"])
            while some := answer.fetchmany(ROWS_AT_ONCE):
                for (text,) in some:
                    number += 1
                    yield Found(f"{path}, row {number}", str(text).encode("utf-8"))
        except duckdb.Error as error:
            why = str(error).splitlines()[0]
            raise DatasetError(f"{path}: is no Parquet file that DuckDB can read ({why}); fetch it again") from None
