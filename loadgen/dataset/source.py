"""Reads a data set from a file or a topic: JSON keeps its bytes, a row of CSV or Parquet becomes a JSON object."""

import codecs
import csv
import gzip
import io
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO, cast

import duckdb

from loadgen.dataset.store import BLANK, Builder, Dataset
from loadgen.dataset.topic import TopicAddress, read_topic
from loadgen.errors import DatasetError, OptionsError
from loadgen.reading import refuse_constant
from loadgen.summary import MOST_BYTES_KEPT, SCHEME

MOST_RECORD_BYTES = 16 << 20
"""Limit for a record; brokers accept far less by default."""
BENCH = "bench"
GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
# What keeps its type in a table. A text such as 007 is no number of JSON, and stays a text.
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
BOOLEAN = re.compile("true|false")
ROWS_AT_ONCE = 1_000
# An alias must not match the name of a column, which it would then mean.
ROW = '"the row of sinkbench"'


def open_dataset(
    source: str,
    key: str | None = None,
    client_settings: Mapping[str, str] | None = None,
    most_bytes: int = MOST_BYTES_KEPT,
) -> Dataset:
    """Reads and validates the first records of a file or topic, up to `most_bytes`.

    `source` is a file (newline-delimited JSON, a JSON array or CSV, also compressed by gzip, or Parquet) or
    kafka://HOST:PORT/TOPIC; `key` is the path in a record to its key. Raises DatasetError, with the line, if it has no
    usable records, and OptionsError for an invalid path or setting."""
    steps = None if key is None else steps_of(key)
    left_out, whole, builder = 0, True, Builder(most_bytes)
    found: Iterator[tuple[str, bytes, bytes | None]]
    if source.startswith(SCHEME):
        messages, whole, left_out = read_topic(TopicAddress.of(source), client_settings or {}, most_bytes)
        found = (
            (f"{source}, partition {each.partition}, offset {each.offset}", each.value, each.key) for each in messages
        )
    else:
        found = ((where, text, None) for where, text in _records_of_file(Path(source), most_bytes))
    for where, text, own_key in found:
        try:
            record = parse_record(text)
            own_key = own_key if steps is None else key_at(record, steps)
            fitted = builder.add(text, own_key)
        except ValueError as wrong:
            raise DatasetError(
                f"{where}: {wrong}; correct it, or leave it out; JSON has one record a line, or is one array (a file"
                " that was cut off ends in the middle of a record)"
            ) from None
        if not fitted:
            whole = False
            break
        if own_key is None and not builder.keyless:
            builder.keyless = where.removeprefix(f"{source}, ")
    if not builder.records:
        raise DatasetError(f"{source}: has no record with a value; name another")
    return builder.build(source, whole=whole, left_out=left_out)


def parse_record(text: bytes) -> dict[str, Any]:
    """Returns a record's members. Raises ValueError unless it is a JSON object in UTF-8 without a member "bench"."""
    try:
        value = json.loads(text.decode("utf-8"), parse_constant=refuse_constant)
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (byte {error.start + 1})") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is no JSON ({error.msg} at its character {error.pos + 1})") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if type(value) is not dict:
        raise ValueError("is JSON, but no object")
    if BENCH in value:
        raise ValueError(f'has a member "{BENCH}", which sinkbench\'s audit needs; rename it')
    return value


def steps_of(path: str) -> tuple[str, ...]:
    """Splits a path: names with dots between them, or a JSON Pointer (RFC 6901). Raises OptionsError."""
    if path.startswith("/"):
        return tuple(step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/"))
    steps = tuple(path.split("."))
    if not all(steps):
        raise OptionsError(
            f"key: found {path!r}, which has an empty step; write names with one dot between them, such as customer.id"
        )
    return steps


def key_at(record: Any, steps: tuple[str, ...]) -> bytes | None:
    """Returns the value at a path as a key: a text unchanged, a number or boolean as JSON; else None."""
    found = record
    for step in steps:
        if isinstance(found, dict):
            found = found.get(step)
        elif isinstance(found, list) and step.isascii() and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    if isinstance(found, str):
        # A lone surrogate has no UTF-8.
        return found.encode("utf-8", "replace")
    return json.dumps(found).encode() if isinstance(found, int | float) else None


def _records_of_file(path: Path, most_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Yields the records of a file, each after its place; the first `most_bytes` decide the types of CSV columns.

    Raises DatasetError, with the line or record, if it cannot be read or ends early."""
    with _opened(path) as file:
        start = file.read(1 << 12)
        file.seek(0)
        if start.startswith(PARQUET):
            query = f"SELECT to_json({ROW})::VARCHAR FROM read_parquet(?) AS {ROW}"  # noqa: S608  no text of others
            yield from _asked(path, file.fileno(), query, "row", "Parquet file")
        elif re.search(r"\.(csv|tsv)(\.gz|\.gzip)?$", path.name, re.IGNORECASE):
            yield from _csv_rows(path, file, most_bytes)
        elif start.removeprefix(codecs.BOM_UTF8).lstrip(BLANK).startswith(b"["):
            yield from _elements(path, file)
        else:
            for number in count(1):
                if not (line := file.readline(MOST_RECORD_BYTES + 1)):
                    return
                if len(line) > MOST_RECORD_BYTES:
                    raise DatasetError(f"{path}, line {number}: has more than {MOST_RECORD_BYTES:,} bytes")
                if text := (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip(BLANK):
                    yield f"{path}, line {number}", text


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The content of a file, decompressed if its first bytes are those of gzip."""
    try:
        if not path.is_file():
            found = "is no file" if path.exists() else "there is no such file"
            raise DatasetError(f"{path}: {found}; name a file of records")
        with path.open("rb") as file:
            packed = file.read(2) == GZIP
            file.seek(0)
            yield cast("BinaryIO", gzip.GzipFile(fileobj=file)) if packed else file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DatasetError(f"{path}: cannot be unpacked, or ends in the middle ({error}); fetch it again") from None
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None


def _elements(path: Path, file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """The elements of a JSON array, byte for byte."""
    query = "SELECT json::VARCHAR FROM read_json_objects(?, format='array', maximum_object_size=16777216)"
    with NamedTemporaryFile() as plain:
        shutil.copyfileobj(file, plain)
        plain.seek(-min(plain.tell(), 1 << 12), os.SEEK_END)
        # DuckDB does not notice a truncated compressed file, or an array truncated after a comma.
        if not plain.read().rstrip(BLANK).endswith(b"]"):
            raise DatasetError(f"{path}: ends in the middle of its array; fetch it again")
        yield from _asked(path, plain.fileno(), query, "element", "JSON array")


def _asked(path: Path, descriptor: int, query: str, each: str, kind: str) -> Iterator[tuple[str, bytes]]:
    """Yields the text of each record that DuckDB reads in an open file."""
    # DuckDB would download an extension for what it does not support.
    config: dict[str, Any] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "threads": 1,
    }
    with duckdb.connect(":memory:", config=config) as connection:
        try:
            # By descriptor, since DuckDB takes a name with brackets for a pattern.
            answer = connection.execute(query, [f"/proc/{os.getpid()}/fd/{descriptor}"])
            numbers = count(1)
            while some := answer.fetchmany(ROWS_AT_ONCE):
                yield from ((f"{path}, {each} {next(numbers)}", str(text).encode("utf-8")) for (text,) in some)
        except duckdb.Error as error:
            why = re.sub(r'in file "[^"]*", ', "", str(error).splitlines()[0]).partition(" Try ")[0]
            raise DatasetError(
                f"{path}: is no {kind} that DuckDB can read ({why}), or ends in the middle of it; fetch it again"
            ) from None


def _csv_rows(path: Path, file: BinaryIO, most_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Yields rows as JSON objects. A column of only JSON numbers, or only booleans, keeps the type; others are text."""
    names: list[str] = []
    kinds: list[set[re.Pattern[str]]] = []
    read = 0
    for line, cells in _cells(path, file):
        if not names:
            names, kinds = cells, [{NUMBER, BOOLEAN} for _ in cells]
            if len(set(names)) < len(names) or not all(names):
                raise DatasetError(
                    f"{path}, line {line}: a column has no name, or two have the same; the first line names them"
                )
            continue
        for kind, cell in zip(kinds, cells, strict=True):
            if cell:
                kind.difference_update([each for each in kind if not each.fullmatch(cell)])
        if (read := read + sum(map(len, cells))) > most_bytes:
            break

    def value(kinds: set[re.Pattern[str]], cell: str) -> str:
        # After the bytes that decided the column's type, a cell may have another type.
        plain = any(kind.fullmatch(cell) for kind in kinds)
        return (cell if plain else json.dumps(cell, ensure_ascii=False)) if cell else "null"

    heads = [json.dumps(name, ensure_ascii=False) for name in names]
    for line, cells in islice(_cells(path, file), 1, None):
        members = (f"{head}: {value(kind, cell)}" for head, kind, cell in zip(heads, kinds, cells, strict=True))
        yield f"{path}, line {line}", f"{{{', '.join(members)}}}".encode("utf-8", "replace")


def _cells(path: Path, file: BinaryIO) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, with that of the names, each with its first line's number."""
    csv.field_size_limit(MOST_RECORD_BYTES)
    file.seek(0)
    lines = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    line, width = 1, 0
    try:
        head = lines.readline()
        # A quoted name may have line breaks.
        while head.count('"') % 2 and (more := lines.readline()):
            head += more
        outside = re.sub('"[^"]*"', "", head)
        lines.seek(0)
        # DuckDB's read_csv silently drops what follows an unmatched quotation mark.
        reader = csv.reader(lines, delimiter=max(",;\t|", key=outside.count), strict=True)
        for cells in reader:
            width = width or len(cells)
            if cells and len(cells) != width:
                raise csv.Error(f"{len(cells)} columns, the first line has {width}")  # noqa: TRY301  as csv's own
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except (csv.Error, UnicodeDecodeError) as error:
        raise DatasetError(
            f"{path}, line {line}: is no row ({error}), or the file ends in the middle of it; correct it"
        ) from None
    finally:
        lines.detach()
