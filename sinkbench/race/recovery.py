"""Services that died in a trial: the next one finds a whole stack, or its first step says what is missing."""

from __future__ import annotations

import time

from sinkbench.errors import ServiceError
from sinkbench.live.events import Events
from sinkbench.services.failures import in_one_line
from sinkbench.trial.cluster import Cluster

__all__ = ["recover"]

# How long a run waits for a service that is not its own to start again.
RETURN_SECONDS = 60.0


def recover(bench: Cluster, events: Events) -> bool:
    """Starts again what has died, or waits for it where others start it; then finds every service anew.

    Returns whether anything had died.
    """
    dead = _dead(bench)
    if not dead:
        return False
    if bench.stack.endpoints.shared:
        events.say(f"{' and '.join(dead)} did not answer; waiting up to {RETURN_SECONDS:.0f} s")
        deadline = time.monotonic() + RETURN_SECONDS
        while time.monotonic() < deadline and _dead(bench):
            time.sleep(1)
    else:
        events.say(f"starting {' and '.join(dead)} again")
        try:
            bench.stack.up(events.phase)
        except ServiceError as error:
            # Another one may have died meanwhile.
            events.say(f"{in_one_line(error)}; once more")
            bench.stack.up(events.phase)
    bench.reconnect()
    return True


def _dead(bench: Cluster) -> list[str]:
    return [state.name for state in bench.stack.services() if state.state != "running"]
