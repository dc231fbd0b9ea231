"""Whether `docker compose up` asks the controller's container for a race: sinkbench/run does what the exit code says.

The `up` that starts the services asks for one, and so does one with another SINKBENCH_PLAN. Any other only changes the
project, such as the number of its workers, which asks for no load.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from loadgen.reading import parse_json, read_text
from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT
from sinkbench.stack.engine import DockerEngine

__all__ = ["LAST", "asked_for"]

LAST = Path("results") / ".up.json"
"""Below the checkout: what the last race was asked by."""
CONTROLLER = "controller"
# What Python itself ends with after an error is another.
NOT_ASKED = 3


def asked_for(last: Mapping[str, Any], since: Sequence[str], plan: str) -> bool:
    """Whether a controller that starts now is to race.

    Args:
        last: `since` and `plan` as they were at the last race that an `up` asked for; empty if there was none.
        since: when each of the services was started; empty if nobody tells.
        plan: SINKBENCH_PLAN; empty if it is not set.
    """
    before = last.get("since")
    # A service that is made anew, or was started again after it died, does not make another project.
    same = before == since or (isinstance(before, list) and not set(before).isdisjoint(since))
    return not same or plan not in ("", last.get("plan"))


def _read(file: Path) -> dict[str, Any]:
    with suppress(FileNotFoundError, ValueError, StackError):
        found = parse_json(read_text(file, StackError))
        return found if isinstance(found, dict) else {}
    return {}


def _started() -> list[str]:
    """When each service of the project but the controller was started, as the engine tells it; empty if it does not."""
    try:
        engine = DockerEngine("")
        engine.project = engine.project_of(socket.gethostname()) or ""
        services = [each for each in engine.containers() if each.service != CONTROLLER]
        return sorted(str(engine.inspect(each)["State"]["StartedAt"]) for each in services)
    except StackError:
        # The race tells what is wrong.
        return []


def main() -> int:
    """Takes down that a race begins, and returns 0; NOT_ASKED if none is asked for."""
    since, plan, file = _started(), os.environ.get("SINKBENCH_PLAN", ""), CHECKOUT / LAST
    if not asked_for(_read(file), since, plan):
        return NOT_ASKED
    with suppress(OSError):
        file.write_text(json.dumps({"since": since, "plan": plan}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
