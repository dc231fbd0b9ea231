"""Restores the stack after services died in a trial."""

from __future__ import annotations

import time

from sinkbench.errors import ServiceError
from sinkbench.live.events import Events
from sinkbench.services.failures import in_one_line
from sinkbench.trial.cluster import Cluster

# How long a run waits for the restart of a service that it does not manage.
RETURN_SECONDS = 60.0


def recover(cluster: Cluster, events: Events) -> bool:
    """Restarts dead services, or waits until others restart them, and reconnects. Returns whether any was dead."""
    dead = _dead(cluster)
    if not dead:
        return False
    if cluster.stack.endpoints.shared:
        events.say(f"{' and '.join(dead)} did not answer; waiting up to {RETURN_SECONDS:.0f} s")
        deadline = time.monotonic() + RETURN_SECONDS
        while time.monotonic() < deadline and _dead(cluster):
            time.sleep(1)
    else:
        events.say(f"starting {' and '.join(dead)} again")
        try:
            cluster.stack.up(events.phase)
        except ServiceError as error:
            # Another one may have died meanwhile.
            events.say(f"{in_one_line(error)}; once more")
            cluster.stack.up(events.phase)
    cluster.reconnect()
    return True


def _dead(cluster: Cluster) -> list[str]:
    return [state.name for state in cluster.stack.services() if state.state != "running"]
