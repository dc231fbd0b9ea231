"""Parquet files of rows: a column has its type even if nothing was measured."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from loadgen.database import database as connected
from sinkbench.errors import ResultsError


def write_rows(file: Path, types: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes rows, with a value or None for each of `types` (SQL, by column). OSError, or ResultsError of DuckDB."""
    # DuckDB does not always tell why the system refuses to open a file.
    file.open("ab").close()
    with database(file, "cannot be written", "check the folder, or choose another one") as opened:
        typed = [json.dumps(rows), json.dumps([types])]
        table = opened.sql("SELECT unnest(from_json(?, ?), recursive := true)", params=typed)
        table.write_parquet(str(file))


@contextmanager
def database(file: Path, wrong: str, advice: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory to read or write a file. An error of the system is an OSError, any other a ResultsError:
    what is `wrong` with the file, and what to do."""
    try:
        with connected() as opened:
            yield opened
    except duckdb.Error as failed:
        if number := re.search(r'"errno":"(\d+)"', str(failed)):
            raise OSError(int(number[1]), os.strerror(int(number[1]))) from failed
        reason = str(failed).partition("\n")[0]
        raise ResultsError(f"{file}: {wrong} ({reason}); {advice}") from None
