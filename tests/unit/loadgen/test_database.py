"""A signal in a query of DuckDB, which raises a RuntimeError in place of what the signal's handler does."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer
from typing import Any, NoReturn

import pytest

from loadgen.database import database
from loadgen.errors import Interrupted
from sinkbench.tables import parquet
from sinkbench.trial.queries import SentRecords
from sinkbench.verify.ledger import Ledger

ROOT = Path(__file__).parents[3]
LONG = "SELECT sum(hash(a.range * b.range) % 7) FROM range(1_000_000) a, range(1_000_000) b"


def interrupt(_number: int, _frame: object) -> NoReturn:
    raise Interrupted


@pytest.fixture(params=[interrupt, signal.default_int_handler])
def _signal_soon(request: pytest.FixtureRequest) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, request.param)
    timer = Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    yield
    timer.join()
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_signal_soon")
@pytest.mark.parametrize(
    "database",
    [
        lambda: SentRecords(10, 10),
        lambda: Ledger(":memory:"),
        lambda: parquet.database(Path("a"), "is wrong", "correct it"),
    ],
)
def test_a_signal_in_a_query_ends_it_as_any_other_code(database: Callable[[], Any]) -> None:
    with pytest.raises(Interrupted), database() as opened:
        getattr(opened, "_database", opened).execute(LONG)


def test_another_error_stays() -> None:
    with pytest.raises(RuntimeError, match="of ours"), database():
        raise RuntimeError("of ours")


def test_all_connections_are_made_in_one_place() -> None:
    files = [*(ROOT / "sinkbench").rglob("*.py"), *(ROOT / "loadgen").rglob("*.py")]
    assert [each.name for each in files if "duckdb.connect(" in each.read_text()] == ["database.py"]
