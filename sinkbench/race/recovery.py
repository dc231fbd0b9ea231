"""Services that died in a trial: the next one finds a whole stack, or its first step says what is missing."""

from __future__ import annotations

import time

from sinkbench.errors import ServiceError
from sinkbench.live.events import Events
from sinkbench.services.failures import in_one_line
from sinkbench.trial.cluster import Cluster

# How long a run waits for a service that is not its own to start again.
RETURN_SECONDS = 60.0


def recover(cluster: Cluster, events: Events) -> bool:
    """Starts again what has died, or waits for it where others start it; then finds every service anew.

    Returns whether anything had died.
    """
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
