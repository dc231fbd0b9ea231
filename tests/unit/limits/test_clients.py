"""The plain clients and what a race makes of them; what they write arrives, and none outlives its controller's end."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from unittest.mock import Mock

import psutil
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from loadgen.options import Load
from sinkbench.errors import ServiceError
from sinkbench.limits.clients import Writers, Written, make_records, rate_of, write_for
from sinkbench.limits.measure import LimitJob, dropping
from sinkbench.limits.tune import Measured, Point, Tuned, step_of, step_up
from sinkbench.services.worker import WorkerFailed
from sinkbench.sinks import Destination, Refused
from sinkbench.stack import Endpoint
from sinkbench.trial.observer import Observer
from tests.support.present import present
from tests.support.tlsserver import served
from tests.unit.loadgen.test_loadgen_dataset import built

SECONDS = 0.5


def load(count: int, first_seq: int = 0) -> Load:
    options = {"run": "r", "keys": 10, "record_bytes": 512, "count": count, "first_seq": first_seq}
    return Load.model_validate({"bootstrap": "-", "topic": "-", **options})


class Slow:
    """A writer that takes some time for each batch."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.written: list[list[bytes]] = []

    def batch(self, records: object) -> object:
        return records

    def write(self, batch: list[bytes]) -> None:
        time.sleep(self.seconds)
        self.written.append(batch)

    def close(self) -> None:
        pass


def test_records_are_loadgens_own_and_each_connection_has_others() -> None:
    first, second = (make_records(load(1_234, first_seq)) for first_seq in (0, 1_234))
    assert {len(record) for record in [*first, *second]} == {512}
    assert [json.loads(record)["bench"]["seq"] for record in [*first, *second]] == list(range(2_468))


def test_records_of_the_users_own_are_those_of_their_data_set(tmp_path: Path) -> None:
    built([b'{"id": %d}' % number for number in range(3)]).write(tmp_path / "records")
    made = make_records(load(1_000, 4), tmp_path / "records")
    assert [json.loads(record)["id"] for record in made[:4]] == [1, 2, 0, 1]
    assert [json.loads(record)["bench"]["seq"] for record in made] == list(range(4, 1_004))


def write(writer: Slow, *batches: bytes, records: int) -> Written:
    """What is written in `SECONDS`, in batches of this number of records."""
    return write_for(writer, [[batch] for batch in batches], records, time.monotonic(), SECONDS)


def test_batches_are_written_in_turn_until_the_time_is_over() -> None:
    writer = Slow(0.01)
    written = write(writer, b"1", b"2", b"3", records=1)
    assert writer.written[:4] == [[b"1"], [b"2"], [b"3"], [b"1"]]
    assert written.stored == len(writer.written)
    assert written.problem is None


def test_no_rate_is_above_what_a_sink_that_takes_one_batch_after_the_other_can_do() -> None:
    each, turn = 0.1, Lock()

    class InTurn(Slow):
        def write(self, batch: list[bytes]) -> None:
            with turn:
                super().write(batch)

    start = time.monotonic() + SECONDS / 5
    with ThreadPoolExecutor(4) as clients:
        found = list(clients.map(lambda batch: write_for(InTurn(each), [[batch]], 10, start, SECONDS), (b"1",) * 4))
    assert rate_of(found) <= 10 / each


@pytest.mark.parametrize("error", [Refused("429"), ServiceError("OperationalError: gone")])
def test_an_error_ends_the_writing_and_is_reported(error: Exception) -> None:
    written = write(Mock(write=Mock(side_effect=[None, None, error])), b"1", records=10)
    assert written.stored == 20
    assert written.problem is not None


def test_a_client_that_cannot_connect_says_so_in_one_line() -> None:
    with closing(Writers(load(10))) as writers, pytest.raises(WorkerFailed) as failed:
        writers.open(Destination("postgres", "COPY", "t", Endpoint("host=127.0.0.1 port=1 password=geheim")), 5, 1)
    assert [each for each in ("\n", "geheim") if each in str(failed.value)] == []


def test_a_dropping_connector_keeps_its_transforms_and_drops_last() -> None:
    config = dropping({"transforms": "payload", "transforms.payload.type": "HoistField"})
    assert config["transforms"] == "payload,sinkbench_drop"
    assert config["transforms.sinkbench_drop.type"].endswith(".Filter")
    assert dropping({})["transforms"] == "sinkbench_drop"


def test_numbers_of_tasks_are_taken_as_long_as_they_gain() -> None:
    rates = {3: 100.0, 6: 150.0, 12: 151.0, 24: 900.0}
    found = step_up(lambda number: Measured(rates[number]), [3, 6, 12, 24])
    assert [step.connections for step in found.path] == [3, 6, 12]
    assert present(found.best).connections == 12


def test_a_limit_that_cannot_be_measured_is_none_with_a_note() -> None:
    refused = Mock(side_effect=ServiceError("InsufficientPrivilege: permission denied"))
    fruitless = Mock(return_value=Tuned(None, [step_of(Point(1, 1), Measured(None, "429"))]))
    for search, note in ((refused, "permission denied"), (fruitless, "429")):
        limit = LimitJob("postgres", "COPY", search).run(Observer())
        assert limit.records_per_second is None
        assert note in str(limit.note)


RECORDS = 300


@contextmanager
def bulk() -> Iterator[tuple[Destination, list[int]]]:
    """What answers bulk requests as Elasticsearch does, and the numbers of the records that it was sent."""
    seqs: list[int] = []

    async def answer(request: Request) -> Response:
        seqs.extend(json.loads(line)["bench"]["seq"] for line in (await request.body()).splitlines()[1::2])
        return JSONResponse({"errors": False}, headers={"X-Elastic-Product": "Elasticsearch"})

    with served(Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])) as port:
        endpoint = Endpoint(f"http://127.0.0.1:{port}", options={"index": "tides"})
        yield Destination("elasticsearch", "bulk", "t", endpoint), seqs


def worker() -> psutil.Process:
    """The process that has started the clients."""
    return next(each for each in psutil.Process().children() if "sinkbench.services.worker" in each.cmdline())


@pytest.mark.long
def test_each_client_writes_records_of_its_own_and_says_what_it_took() -> None:
    with bulk() as (to, seqs), closing(Writers(load(RECORDS))) as clients:
        for connections in (1, 3, 2):
            seqs.clear()
            clients.open(to, 100, connections)
            written = clients.write(connections, 0.5)
            assert len(written) == connections
            assert sum(each.stored for each in written) == len(seqs) > 0
            assert {seq // RECORDS for seq in seqs} == set(range(connections))
    assert all(each.cpu_seconds > 0 for each in written)


@pytest.mark.long
def test_no_process_is_left_when_they_are_closed() -> None:
    with bulk() as (to, _):
        clients = Writers(load(RECORDS))
        clients.open(to, 100, 3)
        parent = worker()
        processes = [parent, *parent.children()]
        assert len(processes) == 4
        clients.close()
        # Those that the first process has started end with it, and are then waited for by init.
        _, left = psutil.wait_procs(processes, timeout=5)
        assert not [each for each in left if each.status() != psutil.STATUS_ZOMBIE]
        clients.close()


@pytest.mark.long
def test_a_killed_client_is_reported_and_new_ones_can_be_started() -> None:
    with bulk() as (to, _), closing(Writers(load(RECORDS))) as clients:
        clients.open(to, 100, 1)
        worker().children()[0].kill()
        with pytest.raises(WorkerFailed):
            clients.write(1, 0.1)
        clients.close()
        clients.open(to, 100, 2)
        assert len(clients.write(2, 0.1)) == 2
