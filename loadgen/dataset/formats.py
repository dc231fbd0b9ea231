"""Reads the records of a file: JSON keeps its bytes, a row of CSV or Parquet becomes a JSON object."""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO, Literal, NamedTuple

import duckdb
import zstandard

from loadgen.dataset.record import BLANK
from loadgen.errors import DatasetError

MOST_RECORD_BYTES = 16 << 20
"""Limit for a record; brokers accept far less by default."""
CHUNK_BYTES = 1 << 20
GZIP, ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
TABLES = (".csv", ".tsv")
PACKED = (".gz", ".gzip", ".zst", ".zstd")
# Memory that a frame may request, as `zstd --long=31` makes them.
MOST_WINDOW_BYTES = 1 << 31
# JSON's numbers. A text such as 007 is none, and stays a text.
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
ROWS_AT_ONCE = 1_000
# An alias must not match the name of a column, which it would then mean.
ROW = '"the row of sinkbench"'


class Found(NamedTuple):
    """A record in a file or a topic; `where` is its place there.

    `unended`: it is a file's last line, without a line break: if it is invalid, it was cut off.
    """

    where: str
    text: bytes
    unended: bool = False
    line_of_json: bool = False


def records_of_file(path: Path, most_bytes: int) -> Iterator[Found]:
    """Yields the records of a file, not validated; the first `most_bytes` decide the types of CSV columns.

    Raises DatasetError, with the line or record, if it cannot be read or ends early.
    """
    start = next(_plain_chunks(path), b"")
    ending = path
    while ending.suffix.lower() in PACKED:
        ending = ending.with_suffix("")
    if start.startswith(PARQUET):
        return _parquet_rows(path)
    if ending.suffix.lower() in TABLES:
        return _csv_rows(path, most_bytes)
    if start.removeprefix(codecs.BOM_UTF8).lstrip(BLANK).startswith(b"["):
        return _elements(path)
    return _lines(path)


def _plain_chunks(path: Path) -> Iterator[bytes]:
    """The content of a file, decompressed if its first bytes are those of gzip or zstd."""
    try:
        if not path.is_file():
            found = "is no file" if path.exists() else "there is no such file"
            raise DatasetError(f"{path}: {found}; name a file of records")
        with path.open("rb") as file:
            magic = file.read(4)
            file.seek(0)
            if magic == ZSTD:
                yield from _unzstd(file, path)
            else:
                plain = gzip.GzipFile(fileobj=file) if magic[:2] == GZIP else file
                while chunk := plain.read(CHUNK_BYTES):
                    yield chunk
    except EOFError:
        raise DatasetError(f"{path}: ends in the middle of what gzip has packed; fetch it again") from None
    except (gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
        raise DatasetError(f"{path}: cannot be unpacked ({error}); fetch it again") from None
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None


def _unzstd(file: BinaryIO, path: Path) -> Iterator[bytes]:
    # Its stream_reader cannot distinguish a whole frame from a truncated one.
    unpacker = zstandard.ZstdDecompressor(max_window_size=MOST_WINDOW_BYTES)
    frame, packed = None, b""
    while packed or (packed := file.read(CHUNK_BYTES)):
        frame = frame or unpacker.decompressobj()
        if chunk := frame.decompress(packed):
            yield chunk
        packed = frame.unused_data if frame.eof else b""
        frame = None if frame.eof else frame
    if frame is not None:
        raise DatasetError(f"{path}: ends in the middle of what zstd has packed; fetch it again")


def _raw_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file with their ends, without a byte order mark."""
    number, rest = 1, b""
    for chunk in chain(_plain_chunks(path), [None]):
        *whole, rest = (rest + (chunk or b"")).split(b"\n")
        for line in chain((each + b"\n" for each in whole), [rest] if chunk is None and rest else []):
            if len(line) > MOST_RECORD_BYTES:
                break
            yield line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            number += 1
        else:
            if len(rest) <= MOST_RECORD_BYTES:
                continue
        raise DatasetError(f"{path}, line {number}: has more than {MOST_RECORD_BYTES:,} bytes; no record may be longer")


def _lines(path: Path) -> Iterator[Found]:
    for number, line in enumerate(_raw_lines(path), start=1):
        if text := line.strip(BLANK):
            yield Found(f"{path}, line {number}", text, not line.endswith(b"\n"), line_of_json=True)


def _elements(path: Path) -> Iterator[Found]:
    """The elements of a JSON array, byte for byte."""
    query = "SELECT json::VARCHAR FROM read_json_objects(?, format='array', maximum_object_size=16777216)"
    last = b""
    with NamedTemporaryFile() as plain:
        for chunk in _plain_chunks(path):
            plain.write(chunk)
            last = chunk.rstrip(BLANK)[-1:] or last
        plain.flush()
        # DuckDB does not notice a truncated compressed file, or an array truncated after a comma.
        if last != b"]":
            raise DatasetError(f"{path}: ends in the middle of its array; fetch it again")
        yield from _asked(path, plain.fileno(), query, "element", "JSON array")


def _parquet_rows(path: Path) -> Iterator[Found]:
    query = f"SELECT to_json({ROW})::VARCHAR FROM read_parquet(?) AS {ROW}"  # noqa: S608  no text of others
    with path.open("rb") as file:
        yield from _asked(path, file.fileno(), query, "row", "Parquet file")


def _asked(path: Path, descriptor: int, query: str, each: str, kind: str) -> Iterator[Found]:
    """Yields the text of each record that DuckDB reads in an open file."""
    number = 0
    with _duckdb() as connection:
        try:
            # By descriptor, since DuckDB takes a name with brackets for a pattern.
            answer = connection.execute(query, [f"/proc/{os.getpid()}/fd/{descriptor}"])
            while some := answer.fetchmany(ROWS_AT_ONCE):
                for (text,) in some:
                    number += 1
                    yield Found(f"{path}, {each} {number}", str(text).encode("utf-8"))
        except duckdb.Error as error:
            why = re.sub(r'in file "[^"]*", ', "", str(error).splitlines()[0]).partition(" Try ")[0]
            raise DatasetError(
                f"{path}: is no {kind} that DuckDB can read ({why}), or ends in the middle of it; fetch it again"
            ) from None


def _duckdb() -> duckdb.DuckDBPyConnection:
    # DuckDB would download an extension for what it does not support.
    config: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    connection = duckdb.connect(":memory:", config=config)
    connection.execute("SET threads TO 1")
    return connection


Kind = Literal["number", "boolean", "text"]


def _csv_rows(path: Path, most_bytes: int) -> Iterator[Found]:
    """Yields rows as JSON objects. A column of only JSON numbers, or only booleans, keeps the type; others are text."""
    cells_of_rows = _cells(path)
    _, names = next(cells_of_rows, (1, []))
    if not names:
        raise DatasetError(f"{path}: is empty; its first line must name the columns")
    if len(set(names)) < len(names) or not all(names):
        raise DatasetError(f"{path}, line 1: a column has no name, or two have the same; the first line names them")
    kinds: list[Kind | None] = [None] * len(names)
    read = 0
    for _, cells in cells_of_rows:
        kinds = [_kind(kind, cell) for kind, cell in zip(kinds, cells, strict=True)]
        read += sum(map(len, cells))
        if read > most_bytes:
            break
    heads = [json.dumps(name, ensure_ascii=False) for name in names]
    for line, cells in _cells(path):
        if line > 1:
            members = (f"{head}: {_value(kind, cell)}" for head, kind, cell in zip(heads, kinds, cells, strict=True))
            yield Found(f"{path}, line {line}", f"{{{', '.join(members)}}}".encode("utf-8", "replace"))


def _kind(before: Kind | None, cell: str) -> Kind | None:
    if not cell or before == "text":
        return before
    found: Kind = "number" if NUMBER.fullmatch(cell) else "boolean" if cell in ("true", "false") else "text"
    return found if before in (None, found) else "text"


def _value(kind: Kind | None, cell: str) -> str:
    if not cell:
        return "null"
    # After the bytes that decided the column's type, a cell may have another type.
    return cell if kind != "text" and _kind(None, cell) == kind else json.dumps(cell, ensure_ascii=False)


def _cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows, with that of the names, each with its first line's number."""
    csv.field_size_limit(MOST_RECORD_BYTES)
    texts = _lines_of_text(path)
    head = [next(texts, "")]
    # A quoted name may have line breaks.
    while "".join(head).count('"') % 2 and (more := next(texts, "")):
        head.append(more)
    # DuckDB's read_csv silently drops what follows an unmatched quotation mark.
    reader = csv.reader(chain(head, texts), delimiter=_delimiter("".join(head)), strict=True)
    width = 0
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DatasetError(
                f"{path}, line {line}: is no row ({error}), or the file ends in the middle of it; correct it"
            ) from None
        # An empty line is not a row.
        if not cells:
            continue
        width = width or len(cells)
        if len(cells) != width:
            raise DatasetError(
                f"{path}, line {line}: has {len(cells)} columns, the first line has {width}; correct it"
                " (a file that was cut off ends so)"
            )
        yield line, cells


def _delimiter(head: str) -> str:
    options = "header=false, all_varchar=true, quote='\"', escape='\"', comment='', skip=0"
    with NamedTemporaryFile() as file, _duckdb() as connection:
        file.write(head.encode())
        file.flush()
        query = f"SELECT delimiter FROM sniff_csv(?, {options})"  # noqa: S608  no text of others
        try:
            found = connection.execute(query, [file.name]).fetchone()
        except duckdb.Error:
            found = None
    return "," if found is None else str(found[0])


def _lines_of_text(path: Path) -> Iterator[str]:
    for number, line in enumerate(_raw_lines(path), start=1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError:
            raise DatasetError(f"{path}, line {number}: is not UTF-8; save the file as such") from None
