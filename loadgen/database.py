"""Connections to DuckDB."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb

from loadgen.errors import Interrupted


@contextmanager
def database(path: str = ":memory:", **config: Any) -> Iterator[duckdb.DuckDBPyConnection]:
    """Opens a database. Raises duckdb.Error, and Interrupted where DuckDB replaces what a signal's handler raised."""
    # A second thread would go on with a query that a signal has ended, and close() waits for it.
    with duckdb.connect(path, config={"threads": 1, **config}) as opened:
        try:
            yield opened
        except RuntimeError as error:
            if str(error) != "Query interrupted":
                raise
            raise Interrupted from None
