"""Reads a data set from a file or a topic: JSON keeps its bytes, a row of CSV or Parquet becomes a JSON object."""

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, cast

from loadgen.dataset.store import BLANK, Builder, Dataset
from loadgen.dataset.tables import Dialect, Told, csv_rows, elements, parquet_rows
from loadgen.dataset.topic import TopicAddress, read_topic
from loadgen.errors import DatasetError, OptionsError
from loadgen.reading import refuse_constant
from loadgen.summary import MOST_BYTES_KEPT, SCHEME

MOST_RECORD_BYTES = 16 << 20
"""Limit for a record; brokers accept far less by default."""
BENCH = "bench"
GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
HALF = re.compile(rb"\\u[dD][89a-fA-F]")
NUL = re.compile(rb"(?<!\\)(\\\\)*\\u0000")
# An action of an Elasticsearch bulk file, which has a line of its own, and what may be in it.
ACTIONS = {"index", "create", "update", "delete"}
PARAMETERS = {"routing", "version", "version_type", "pipeline", "require_alias", "dynamic_templates"}

Record = tuple[str, bytes, bytes | None]


def open_dataset(
    source: str,
    key: str | None = None,
    client_settings: Mapping[str, str] | None = None,
    most_bytes: int = MOST_BYTES_KEPT,
    dialect: Dialect = (None, None),
) -> Dataset:
    """Reads and validates the first records of a file or topic, up to `most_bytes`.

    `source` is a file (newline-delimited JSON, also an Elasticsearch bulk file, a JSON array, CSV or Parquet, all also
    compressed by gzip) or kafka://HOST:PORT/TOPIC; `key` is the path in a record to its key. Raises DatasetError, with
    the line, if it has no usable records, and OptionsError for an invalid path or setting."""
    steps = None if key is None else steps_of(key)
    whole, told, builder = True, Told(), Builder(most_bytes)
    found: Iterator[Record]
    if source.startswith(SCHEME):
        messages, whole, told.left_out = read_topic(TopicAddress.of(source), client_settings or {}, most_bytes)
        found = ((f"{source}, partition {one.partition}, offset {one.offset}", one.value, one.key) for one in messages)
    else:
        found = _records_of_file(Path(source), dialect, most_bytes, told)
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
        if NUL.search(text):
            told.add("\\u0000, which PostgreSQL's jsonb refuses", where.removeprefix(f"{source}, "))
    if not builder.records:
        raise DatasetError(f"{source}: has no record with a value; name another")
    return builder.build(source, whole=whole, left_out=told.left_out, notes=told.notes)


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
    # Elasticsearch reads a name with dots as a path.
    if taken := next((name for name in value if name.partition(".")[0] == BENCH), None):
        raise ValueError(f'has a member "{taken}", which sinkbench\'s audit needs; rename it')
    if HALF.search(text) and (half := re.search("[\ud800-\udfff]", json.dumps(value, ensure_ascii=False))):
        raise ValueError(f"has half a character, {half[0]!a}, which is no Unicode text: PostgreSQL refuses it")
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
        return found.encode()
    return json.dumps(found).encode() if isinstance(found, int | float) else None


def _records_of_file(path: Path, dialect: Dialect, most_bytes: int, told: Told) -> Iterator[Record]:
    """Yields the records of a file; the first `most_bytes` decide the types of CSV columns.

    Raises DatasetError, with the line or record, if it cannot be read or ends early."""
    with _opened(path) as file:
        start = file.read(1 << 12)
        file.seek(0)
        if start.startswith(PARQUET):
            rows = parquet_rows(path, file, told)
        elif dialect != (None, None) or re.search(r"\.(csv|tsv)(\.gz|\.gzip)?$", path.name, re.IGNORECASE):
            rows = csv_rows(path, file, dialect, most_bytes, told)
        elif start.removeprefix(codecs.BOM_UTF8).lstrip(BLANK).startswith(b"["):
            rows = elements(path, file)
        else:
            yield from _documents(_lines(path, file), told)
            return
        yield from ((where, text, None) for where, text in rows)


def _lines(path: Path, file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    for number in count(1):
        if not (line := file.readline(MOST_RECORD_BYTES + 1)):
            return
        if len(line) > MOST_RECORD_BYTES:
            raise DatasetError(f"{path}, line {number}: has more than {MOST_RECORD_BYTES:,} bytes")
        if text := (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip(BLANK):
            yield f"{path}, line {number}", text


def _documents(lines: Iterator[tuple[str, bytes]], told: Told) -> Iterator[Record]:
    """Yields each line; of an Elasticsearch bulk file, which its first line shows, the documents that it indexes."""
    for number, (at, text) in enumerate(lines):
        action = _action(text) if number == 0 or told.form else None
        if action is None and not told.form:
            yield at, text, None
            continue
        told.form = "read as an Elasticsearch bulk file: its documents, with _id as the key unless --key names another"
        name, about = action or ("update", {})
        if name == "update":
            raise DatasetError(f"{at}: is no action of a bulk file with a whole document; leave it out, with the next")
        if name == "delete":
            told.left_out += 1
        else:
            key = about.get("_id")
            yield *next(lines, (at, b"")), None if key is None else str(key).encode()


def _action(text: bytes) -> tuple[str, dict[str, Any]] | None:
    """The name of a bulk file's action, and what is in it; None if a line is none."""
    with suppress(ValueError, RecursionError, AttributeError, TypeError):
        ((name, about),) = json.loads(text).items()
        if name in ACTIONS and all(each in PARAMETERS or each.startswith(("_", "if_")) for each in {**about}):
            return name, about
    return None


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
