"""Reads CSV, Parquet and JSON arrays with DuckDB: each row becomes a JSON object, whose numbers keep their digits."""

import codecs
import gzip
import json
import os
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO, cast

import duckdb

from loadgen.database import database
from loadgen.dataset.store import BLANK
from loadgen.errors import DatasetError

# What keeps its type in a CSV table. A text such as 007 is no number of JSON, and stays a text.
NUMBER = "-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?|[+-]?(?i:nan|inf|infinity)"
BOOLEAN = "true|false"
WITH_COMMA = "[+-]?[0-9][0-9.' ]*(,[0-9]+)*".replace("'", "''")
# NaN and infinity, and texts, which may contain these words.
CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|[+-]?(?:nan|infinity|inf)', re.IGNORECASE)
# Numbers that DuckDB's JSON writes as the nearest double.
EXACT = re.compile(r"DECIMAL\(.*\)|U?HUGEINT|BIGNUM")
DELIMITERS = ",;\t|"
HEAD_BYTES = 1 << 16
ROWS_AT_ONCE = 1_000
ADVICE = "correct it, or tell sinkbench how it is written: --delimiter, --header, --no-header (plan: below load)"

Dialect = tuple[str | None, bool | None]
"""The delimiter of a CSV file, and whether its first line has names; None is found out."""
Rows = Iterator[tuple[str, bytes]]
Ask = Callable[..., Iterator[tuple[Any, ...]]]


class Told:
    """What a person should know about how a source was read."""

    def __init__(self) -> None:
        self.form, self.left_out = "", 0
        self._counts, self._first = Counter[str](), defaultdict[str, list[str]](list)

    def add(self, what: str, place: str) -> None:
        self._counts[what] += 1
        if self._counts[what] <= 3:
            self._first[what].append(place)

    @property
    def notes(self) -> tuple[str, ...]:
        more = {what: f" and {count - 3:,} more" for what, count in self._counts.items() if count > 3}
        found = (f"{what}: {'; '.join(places)}{more.get(what, '')}" for what, places in self._first.items())
        return (self.form, *found) if self.form else (*found,)


def elements(path: Path, file: BinaryIO) -> Rows:
    """The elements of a JSON array, byte for byte."""
    query = "SELECT json::VARCHAR FROM read_json_objects(?, format='array', maximum_object_size=16777216)"
    with _database(path, file, "JSON array") as (plain, ask):
        plain.seek(-min(plain.seek(0, os.SEEK_END), HEAD_BYTES), os.SEEK_CUR)
        # DuckDB does not notice an array truncated after a comma.
        if not plain.read().rstrip(BLANK).endswith(b"]"):
            raise DatasetError(f"{path}: ends in the middle of its array; fetch it again")
        yield from ((f"{path}, element {number}", text.encode()) for number, (text,) in enumerate(ask(query), 1))


def parquet_rows(path: Path, file: BinaryIO, told: Told) -> Rows:
    with _database(path, file, "Parquet file") as (_, ask):
        kinds = {name: kind for name, kind, *_ in ask("DESCRIBE SELECT * FROM read_parquet(?)")}
        quoted = [(name.replace('"', '""'), "" if EXACT.fullmatch(kind) else "to_json") for name, kind in kinds.items()]
        cells = [f'{function}("{name}")::VARCHAR' for name, function in quoted]
        yield from _objects(path, list(kinds), ask(f"SELECT {', '.join(cells)} FROM read_parquet(?)"), told)  # noqa: S608


def csv_rows(path: Path, file: BinaryIO, dialect: Dialect, most_bytes: int, told: Told) -> Rows:
    """Columns with only JSON numbers or only booleans in some `most_bytes` keep the type; others are text."""
    with _database(path, file, "CSV file") as (plain, ask):
        head = plain.read(HEAD_BYTES).removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace").lstrip("\r\n")
        *how, header, width = _sniffed(path, head, ask, dialect)
        columns = [f"column{number}" for number in range(width)]
        every = (
            f"FROM read_csv(?, auto_detect=false, columns={dict.fromkeys(columns, 'VARCHAR')}, delim=?, quote=?,"
            # The only cell of an empty line is no record.
            f" escape=?, header=false, strict_mode=true, max_line_size=16777216) WHERE {width > 1} OR column0 <> ''"
        )
        names = [name or "" for name in next(ask(f"{every} LIMIT 1", *how), ())] if header else columns
        if len(set(names)) < len(names) or not all(names):
            raise DatasetError(f"{path}, line 1: has a column without a name, or two of one name; {ADVICE}")
        rows, most = f"({every} OFFSET {header:d})", 2 * most_bytes * (head.count("\n") + 1) // (len(head) + 1)
        facts = [
            f"bool_and(regexp_full_match({each}, '{NUMBER}')), bool_and(regexp_full_match({each}, '{BOOLEAN}')),"
            f" bool_and(regexp_full_match({each}, '{WITH_COMMA}|{NUMBER}')), min({each}) FILTER ({each} LIKE '%,%')"
            for each in columns
        ]
        found = next(ask(f"SELECT {', '.join(facts)} FROM (FROM {rows} LIMIT {most})", *how))  # noqa: S608
        told.form = f"read as CSV, columns: {width}, delimiter: {how[0]!r}, quotes: {how[1]}"
        cells = []
        for name, each, is_number, is_boolean, has_commas, example in zip(
            names, columns, found[::4], found[1::4], found[2::4], found[3::4], strict=True
        ):
            # After the rows that decide, a cell may have another type.
            kind = NUMBER if is_number else BOOLEAN if is_boolean else ""
            cells.append(f"CASE WHEN regexp_full_match({each}, '{kind}') THEN {each} ELSE to_json({each})::VARCHAR END")
            if has_commas and example:
                told.add("numbers with a comma stay text", f"column {name[:40]} ({example[:40]})")
        yield from _objects(path, names, ask(f"SELECT {', '.join(cells)} FROM {rows}", *how), told)  # noqa: S608


def _objects(path: Path, names: Sequence[str], rows: Iterable[Sequence[str | None]], told: Told) -> Rows:
    """Rows of JSON values, without NaN and infinity, as objects."""

    def finite(place: str, found: re.Match[str]) -> str:
        if found[0].startswith('"'):
            return found[0]
        told.add("NaN and infinity become null", place)
        return "null"

    heads = [json.dumps(name, ensure_ascii=False) for name in names]
    for number, row in enumerate(rows, 1):
        members = []
        for name, head, cell in zip(names, heads, row, strict=True):
            value = cell or "null"
            if not value.startswith('"') and not value[-1].isdigit():
                value = CONSTANT.sub(partial(finite, f"row {number}, column {name[:40]}"), value)
            members.append(f"{head}: {value}")
        yield f"{path}, row {number}", f"{{{', '.join(members)}}}".encode()


def _sniffed(path: Path, head: str, ask: Ask, dialect: Dialect) -> tuple[str, str, str, bool, int]:
    """The delimiter, quotation mark, escape, whether there are names, and the number of columns, as DuckDB finds them.
    Where it finds no columns, its reader then names the line that does not fit."""
    outside = re.sub('"[^"]*"', "", head)
    asked, has_names = dialect[0] and dialect[0].replace("\\t", "\t"), dialect[1]
    given = [(name, value) for name, value in (("delim", asked), ("header", has_names)) if value is not None]
    options = "".join(f", {name}=?" for name, _ in given)
    query = f"SELECT * FROM sniff_csv(?, skip=0, comment='', strict_mode=true{options})"  # noqa: S608  of ours
    delimiter, quote, escape, header, columns = "", "", "", has_names is not False, 0
    with suppress(DatasetError):
        ((delimiter, quote, escape, _, _, _, header, found, *_),) = ask(query, *(value for _, value in given))
        columns = len(found)
    if columns < 2:
        delimiter = asked or max(DELIMITERS, key=outside.count)
        columns = 1 + outside.partition("\n")[0].count(delimiter)
    if head and not header and has_names is None:
        raise DatasetError(
            f"{path}, line 1: {head.partition(chr(10))[0][:40]!r} may be names or a record; say --header for names"
            " (load.header: true), --no-header for a record (load.header: false)"
        )
    quote, escape = ('"' if each in ("", "(empty)") else each for each in (quote, escape))
    return delimiter, quote, escape, header, columns


@contextmanager
def _database(path: Path, file: BinaryIO, kind: str) -> Iterator[tuple[BinaryIO, Ask]]:
    # DuckDB would download an extension for what it does not support.
    config: dict[str, Any] = dict.fromkeys(("autoinstall_known_extensions", "autoload_known_extensions"), "false")
    with NamedTemporaryFile() as unpacked, database(**config) as connection:
        connection.execute("SET enable_progress_bar = false")
        plain = file
        if isinstance(file, gzip.GzipFile):
            # DuckDB does not notice a truncated one.
            shutil.copyfileobj(file, unpacked)
            plain = cast("BinaryIO", unpacked)

        def ask(query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
            try:
                # By descriptor, since DuckDB takes a name with brackets for a pattern.
                answer = connection.execute(query, [f"/proc/{os.getpid()}/fd/{plain.fileno()}", *values])
                while some := answer.fetchmany(ROWS_AT_ONCE):
                    yield from some
            except duckdb.Error as error:
                raise DatasetError(_problem(path, kind, str(error))) from None

        plain.seek(0)
        yield plain, ask


def _problem(path: Path, kind: str, said: str) -> str:
    advice, end = ADVICE if kind == "CSV file" else "fetch it again", "or the file ends in the middle of it"
    if line := re.search(r"CSV Error on Line: (\d+)", said):
        why = "".join(re.findall("Expected Number.*|Value with.*|Invalid unicode|Maximum line.*", said)[:1])
        return f"{path}, line {line[1]}: is no row ({why}), {end}; {advice}"
    if "reached an invalid state" in said:
        said = r"its lines end partly in \n and partly in \r\n, or quotation marks stand within a cell"
    why = re.sub(r'in file "[^"]*", ', "", said.splitlines()[0]).partition(" Try ")[0]
    return f"{path}: is no {kind} that DuckDB can read ({why}), {end}; {advice}"
