"""Races in the background, for tests that break something meanwhile, and what is left of them."""

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from sinkbench.errors import SinkbenchError
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka, group_of
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import open_sink, sinks_of
from sinkbench.stack import Endpoints, Stack
from sinkbench.stack.local import LocalStack
from sinkbench.trial.names import PREFIX
from tests.support.commands import started
from tests.support.trials import quick_plan
from tests.support.waiting import until

# Kafka waits so long for a consumer that is dead, before others get its partitions; by default 45 s.
SOON_MISSED = '{pipeline: postgres/jdbc, overrides: {consumer.override.session.timeout.ms: "6000"}}'
ALL_FOUR = ("elasticsearch/camel-index", "elasticsearch/camel-bulk", "postgres/jdbc", "postgres/jdbc-pgbouncer")
ONE = quick_plan("postgres/jdbc", trials=2, window=6)


def in_a_drain(pipeline: str, what: str, seconds: int) -> str:
    """The text of a plan of a drain in which a worker is killed or frozen."""
    return f"""
mode: faults
pipelines: [{{{pipeline}, overrides: {{consumer.override.session.timeout.ms: "6000"}}}}]
sustain: {{backlog_records: 300_000}}
faults: [{{what: {what}, target: worker, at_share: 0.2, seconds: {seconds}}}]
"""


class Quick(NamedTuple):
    """A race of all four pipelines that nothing disturbs: the folder that it ran in, what it printed, what `show --all`
    prints of it, and what its live page was told, each with its kind."""

    folder: Path
    output: str
    shown: str
    news: list[tuple[str, Any]]


def left_behind(stack: LocalStack) -> list[str]:
    """Everything of a trial's that is still there."""
    with ConnectCluster(stack.endpoints.connect.values()) as connect:
        found = connect.connectors()
    kafka = Kafka(stack.endpoints.kafka)
    found += [name for name in (*kafka.topics(), *kafka.groups()) if name.removeprefix("connect-").startswith(PREFIX)]
    for name in sinks_of(stack.endpoints):
        with closing(open_sink(name, stack.endpoints, CHECKOUT)) as sink:
            found += sink.leftovers(PREFIX)
    return found


@contextlib.contextmanager
def a_race(folder: Path, plan: str) -> Iterator[subprocess.Popen[str]]:
    """A race that goes on in the background; whatever the test does with it, it has ended afterwards."""
    (folder / "mine.yaml").write_text(plan)
    with started(folder, "race", "mine.yaml") as race:
        yield race


def drains(stack: Stack, trial: str) -> bool:
    """Whether the connector of the race's trial of that number runs."""
    # Workers that start anew, or rebalance, answer nothing for a while.
    with contextlib.suppress(SinkbenchError), ConnectCluster(stack.endpoints.connect.values()) as connect:
        found = [connect.status(name) for name in connect.connectors() if name.endswith(trial)]
        return any(status is not None and status.running == 3 for status in found)
    return False


def wait_for_draining(stack: Stack, trial: str) -> None:
    """Waits until `drains`."""
    until(lambda: drains(stack, trial), 120)


def remove_connectors(connect: ConnectCluster, kafka: Kafka, *names: str) -> None:
    """Removes connectors, and their consumer groups."""
    at_once(connect.delete, names)
    for name in names:
        connect.wait_until_gone(name)
        kafka.wait_until_empty(group_of(name))
        kafka.delete_group(group_of(name))


def offer_defaults(stack: LocalStack) -> None:
    """Makes what connectors write to by hand; a test before may have taken the alias for an index of its own."""
    for name in sinks_of(stack.endpoints):
        with closing(open_sink(name, stack.endpoints, CHECKOUT)) as sink:
            sink.offer_default()


@contextlib.contextmanager
def cluster_set(stack: LocalStack, settings: Mapping[str, object]) -> Iterator[None]:
    """Elasticsearch's cluster is set so meanwhile."""
    address = f"{stack.endpoints.sinks['elasticsearch'].address}/_cluster/settings"
    try:
        httpx.put(address, json={"persistent": settings}).raise_for_status()
        yield
    finally:
        httpx.put(address, json={"persistent": dict.fromkeys(settings)}).raise_for_status()


def at_once(ask: Callable[[str], object], names: Iterable[str]) -> None:
    """Asks Connect something of each connector; requests that wait together have one rebalance."""
    with ThreadPoolExecutor(max_workers=16) as pool:
        list(pool.map(ask, names))


def stack_file(folder: Path, ours: Endpoints, variables: object = None, **sections: object) -> Path:
    """A stack file with Kafka and Connect of these endpoints, and with these sections; JSON is YAML."""
    metrics = {"metrics": list(ours.connect_metrics.values())} if variables is not None else {}
    connect = {"urls": list(ours.connect.values()), "workers": 3, **metrics, "variables": variables or {}}
    file = folder / "clusters.yaml"
    file.write_text(json.dumps({"kafka": {"bootstrap": ours.kafka}, "connect": connect, **sections}))
    return file
