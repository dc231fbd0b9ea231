"""The processes of the plain clients: what they write arrives, and none of them outlives its controller's end."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psutil
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sinkbench.limits.clients import MakeRecords, Writers
from sinkbench.services.worker import WorkerFailed
from sinkbench.sinks import Destination
from sinkbench.stack import Endpoint
from tests.support.tlsserver import served

RECORDS = MakeRecords("r", 0, 300, 10, 512)


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


def test_each_client_writes_records_of_its_own_and_says_what_it_took() -> None:
    with bulk() as (to, seqs), closing(Writers(RECORDS)) as clients:
        for connections in (1, 3, 2):
            seqs.clear()
            clients.open(to, 100, connections)
            written = clients.write(connections, 0.5)
            assert len(written) == connections
            assert sum(each.stored for each in written) == len(seqs) > 0
            assert {seq // RECORDS.count for seq in seqs} == set(range(connections))
    assert all(each.cpu_seconds > 0 for each in written)


def test_no_process_is_left_when_they_are_closed() -> None:
    with bulk() as (to, _):
        clients = Writers(RECORDS)
        clients.open(to, 100, 3)
        parent = worker()
        processes = [parent, *parent.children()]
        assert len(processes) == 4
        clients.close()
        # Those that the first process has started end with it, and are then waited for by init.
        _, left = psutil.wait_procs(processes, timeout=5)
        assert not [each for each in left if each.status() != psutil.STATUS_ZOMBIE]
        clients.close()


def test_a_killed_client_is_reported_and_new_ones_can_be_started() -> None:
    with bulk() as (to, _), closing(Writers(RECORDS)) as clients:
        clients.open(to, 100, 1)
        worker().children()[0].kill()
        with pytest.raises(WorkerFailed):
            clients.write(1, 0.1)
        clients.close()
        clients.open(to, 100, 2)
        assert len(clients.write(2, 0.1)) == 2
