"""Parquet files of rows: a column has its type even if nothing was measured."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb


def write_rows(file: Path, types: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes rows, which have a value or None for each of `types` (SQL types by column); OSError if it cannot."""
    # DuckDB does not always tell why the system refuses to open a file.
    file.open("ab").close()
    with database() as opened:
        typed = [json.dumps(rows), json.dumps([types])]
        table = opened.sql("SELECT unnest(from_json(?, ?), recursive := true)", params=typed)
        table.write_parquet(str(file))


@contextmanager
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory; a file that the system refuses is an OSError, anything else a duckdb.Error."""
    try:
        with duckdb.connect(":memory:", config={"threads": 1}) as opened:
            yield opened
    except duckdb.Error as failed:
        if number := re.search(r'"errno":"(\d+)"', str(failed)):
            raise OSError(int(number[1]), os.strerror(int(number[1]))) from failed
        raise
