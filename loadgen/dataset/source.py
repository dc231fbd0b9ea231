"""Reads a data set from a file or a topic."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from loadgen.dataset.facts import MOST_BYTES_KEPT, SCHEME
from loadgen.dataset.formats import Found, records_of_file
from loadgen.dataset.record import key_at, parse_record, steps_of
from loadgen.dataset.store import Builder, Dataset
from loadgen.dataset.topic import TopicAddress, read_topic
from loadgen.errors import DatasetError, OptionsError


def open_dataset(
    source: str,
    key: str | None = None,
    client_settings: Mapping[str, str] | None = None,
    most_bytes: int = MOST_BYTES_KEPT,
) -> Dataset:
    """Reads and validates the first records of a file or topic, up to `most_bytes`.

    `source` is a file (newline-delimited JSON, a JSON array or CSV, also compressed by gzip or zstd, or Parquet) or
    kafka://HOST:PORT/TOPIC; `key` is the path in a record to its key. Raises DatasetError, with the line, if it has no
    usable records, and OptionsError for an invalid path or setting.
    """
    try:
        steps = None if key is None else steps_of(key)
    except ValueError as wrong:
        raise OptionsError(f"key: found {key!r}, which {wrong}") from None
    builder = Builder(most_bytes)
    if source.startswith(SCHEME):
        return _of_topic(source, steps, client_settings or {}, builder, most_bytes)
    whole = True
    for found in records_of_file(Path(source), most_bytes):
        if not _add(builder, found, None, steps):
            whole = False
            break
    if not builder.records:
        raise DatasetError(f"{source}: has no record; name another file")
    return builder.build(source, whole=whole)


def _of_topic(
    source: str, steps: tuple[str, ...] | None, settings: Mapping[str, str], builder: Builder, most_bytes: int
) -> Dataset:
    read = read_topic(TopicAddress.of(source), settings, most_bytes)
    times, whole = [], read.whole
    for message in read.messages:
        where = f"{source}, partition {message.partition}, offset {message.offset}"
        if not _add(builder, Found(where, message.value), message.key, steps):
            whole = False
            break
        times.append(message.timestamp_ms)
    if not builder.records:
        raise DatasetError(f"{source}: has no record with a value; name another topic")
    return builder.build(source, whole=whole, times_ms=times, left_out=read.left_out)


def _add(builder: Builder, found: Found, key: bytes | None, steps: tuple[str, ...] | None) -> bool:
    """Adds a record with its own key, or the one at `steps`; returns whether it fitted."""
    try:
        record = parse_record(found.text)
        return builder.add(found.text, key if steps is None else key_at(record, steps))
    except ValueError as wrong:
        cut = ", or the file ends in the middle of it" if found.unended else ""
        # A common mistake is a single object over many lines.
        form = "; a file of JSON has one record in each line, or is one array" if found.line_of_json else ""
        raise DatasetError(f"{found.where}: {wrong}{cut}; correct it, or leave it out{form}") from None
