"""Races in the background, for tests that break something meanwhile, and what is left of them."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from sinkbench.errors import SinkbenchError
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import open_sink, sinks_of
from sinkbench.stack.local import LocalStack
from sinkbench.trial.names import PREFIX
from tests.support.commands import started

__all__ = ["ONE", "SOON_MISSED", "a_race", "left_behind", "wait_for_draining"]

# Kafka waits so long for a consumer that is dead, before others get its partitions; by default 45 s.
SOON_MISSED = '{pipeline: postgres/jdbc, overrides: {consumer.override.session.timeout.ms: "6000"}}'
ONE = """
pipelines: [postgres/jdbc]
trials: 2
drain: {compiling_percent: 100, window_seconds: 6, pilot_seconds: 1, warm_up_seconds: 2}
"""


def left_behind(stack: LocalStack) -> list[str]:
    """Everything of a trial's that is still there."""
    with ConnectCluster(stack.endpoints.connect.values()) as connect:
        found = connect.connectors()
    found += [topic for topic in Kafka(stack.endpoints.kafka).topics() if topic.startswith(PREFIX)]
    for name in sinks_of(stack.endpoints):
        sink = open_sink(name, stack.endpoints, CHECKOUT)
        found += sink.leftovers(PREFIX)
        sink.close()
    return found


@contextlib.contextmanager
def a_race(folder: Path, plan: str) -> Iterator[subprocess.Popen[str]]:
    """A race that goes on in the background; whatever the test does with it, it has ended afterwards."""
    (folder / "mine.yaml").write_text(plan)
    with started(folder, "race", "mine.yaml") as race:
        yield race


def wait_for_draining(stack: LocalStack, trial: str) -> None:
    """Waits until the connector of the race's trial of that number runs."""
    deadline = time.monotonic() + 120
    with ConnectCluster(stack.endpoints.connect.values()) as connect:
        while time.monotonic() < deadline:
            # Workers that start anew answer nothing for a while.
            with contextlib.suppress(SinkbenchError):
                for name in connect.connectors():
                    found = connect.status(name) if name.endswith(trial) else None
                    if found is not None and found.running == 3:
                        return
            time.sleep(0.1)
    raise AssertionError("no connector ran in 120 s")
