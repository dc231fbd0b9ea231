"""What a run's figures depend on and a reader must know: its environment. No name of a host or a user, and no path.

`machine`, `disk` and `cgroup` look at the machine of the controller, `services` asks the services, and `jvm` reads what
they tell of their Java. What cannot be told is None: on clusters of others much is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from sinkbench.environment.cgroup import allowance, container
from sinkbench.environment.disk import disk
from sinkbench.environment.machine import commit, machine
from sinkbench.environment.services import elasticsearch_node, jvms, kafka_durability, versions
from sinkbench.plan import Load
from sinkbench.sinks.reading import SinkSettings
from sinkbench.stack import Stack

__all__ = ["SINK_KEYS", "commit", "describe", "machine", "with_sink"]

SINK_KEYS = ("durability", "sink_settings")
"""What is known of a sink only when it has an index or a table: each has a mapping by service."""


def describe(
    stack: Stack, checkout: Path, plugins: Mapping[str, str | None] | None = None, load: Load | None = None
) -> dict[str, JsonValue]:
    """The machine, and the version, the Java, the limits and the durability of what takes part in a run on `stack`.

    The machine is the controller's; on clusters of others the services have machines of their own. How a sink is set
    is known when it has an index or a table: `with_sink`.

    Args:
        stack: where the services are.
        checkout: where sinkbench's own files are.
        plugins: version of each plugin that takes part, by its class.
        load: how the plan's records are produced.

    Raises:
        StackError: a service of our own does not answer.
    """
    endpoints = stack.endpoints
    node = elasticsearch_node(endpoints)
    kind, own = container()
    return {
        "stack": stack.name,
        "unmeasured": list(stack.unmeasured),
        "workers": stack.workers,
        **machine(),
        "disk": {**disk(stack.data_path)},
        "container": {"kind": kind, **allowance(own)},
        "service_limits": {name: {**allowance(each)} for name, each in stack.allowances().items()},
        "commit": commit(checkout),
        "versions": versions(endpoints, checkout, node),
        "jvm": jvms(endpoints, stack.command_lines(), node),
        "plugins": dict(plugins or {}),
        "durability": {"kafka": kafka_durability(endpoints, load)},
        "sink_settings": {},
    }


def with_sink(environment: Mapping[str, JsonValue], sink: str, settings: SinkSettings) -> dict[str, JsonValue]:
    """The same environment with how a sink is set, as `durability.<sink>` and `sink_settings.<sink>`.

    What is not told now but was told before stays.
    """
    added = dict(environment)
    for key, found in zip(SINK_KEYS, (settings.durability, settings.tuning), strict=True):
        before = _mapping(added.get(key))
        known = _mapping(before.get(sink))
        told = {name: known.get(name) if value is None else value for name, value in found.items()}
        added[key] = {**before, sink: told}
    return added


def _mapping(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}
