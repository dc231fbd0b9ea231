"""Whether `docker compose up` requests a race of the controller's container: the `up` that starts the services does,
and one with another SINKBENCH_PLAN. Others only change the project. sinkbench/run acts on the exit code."""

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT
from sinkbench.stack.engine import DockerEngine

LAST = Path("results") / ".up.json"
"""The start times and the plan of the last race, below the checkout."""
CONTROLLER = "controller"
# Differs from Python's own exit code after an error.
NOT_ASKED = 3


def asked_for(last: Mapping[str, Any], since: Sequence[str], plan: str) -> bool:
    """Whether a controller that starts now should race. `since` has the services' start times, `last` the last race."""
    before = last.get("since")
    # A project is the same even if one of its services was recreated or restarted.
    same = before == since or (isinstance(before, list) and not set(before).isdisjoint(since))
    return not same or plan not in ("", last.get("plan"))


def _started() -> list[str]:
    """When each service but the controller was started; empty if the engine does not tell."""
    # The race reports the problem.
    with suppress(StackError):
        engine = DockerEngine("")
        engine.project = engine.project_of(socket.gethostname()) or ""
        services = [each for each in engine.containers() if each.service != CONTROLLER]
        return sorted(str(engine.inspect(each)["State"]["StartedAt"]) for each in services)
    return []


def main() -> int:
    """Records the race and returns 0; NOT_ASKED if none is requested."""
    since, plan, file, last = _started(), os.environ.get("SINKBENCH_PLAN", ""), CHECKOUT / LAST, None
    with suppress(OSError, ValueError):
        last = json.loads(file.read_text(encoding="utf-8"))
    if not asked_for(last if isinstance(last, dict) else {}, since, plan):
        return NOT_ASKED
    with suppress(OSError):
        file.write_text(json.dumps({"since": since, "plan": plan}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
