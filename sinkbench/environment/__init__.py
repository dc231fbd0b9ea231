"""The environment of a run: the machine and the services that its figures depend on, without hosts, users or paths.
Unknown values are None. Nothing here changes a service, or is asked again during a trial."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from sinkbench.environment.machine import allowance, commit, container, disk, machine
from sinkbench.environment.services import BROKER, about_sinks, jvms, versions
from sinkbench.plan.plan import PlanLoad
from sinkbench.services.kafka import Kafka
from sinkbench.sinks.values import SinkSettings
from sinkbench.stack import Stack

__all__ = ["SINK_KEYS", "commit", "describe", "joined", "machine", "with_sink"]

PLAINTEXT = "PLAINTEXT"
SINK_KEYS = ("durability", "sink_settings")
"""Known only once the sink has an index or a table; each key has a mapping by sink."""


def describe(
    stack: Stack, checkout: Path, plugins: Mapping[str, str | None] | None = None, load: PlanLoad | None = None
) -> dict[str, JsonValue]:
    """Returns the controller's machine, and version, JVM, limits and durability of each service, without sinks'
    settings. Raises StackError if a service that sinkbench started does not answer."""
    endpoints = stack.endpoints
    sinks = about_sinks(endpoints)
    kind, own = container()
    facts, layout = stack.facts(), stack.layout
    wanted = {} if load is None else {"acks": load.acks, "replication": load.replication or endpoints.replication}
    broker = Kafka(endpoints.kafka, endpoints.kafka_settings).broker_settings(BROKER)
    return {
        "stack": stack.name,
        "unmeasured": list(facts.unmeasured),
        "workers": stack.workers,
        "topology": None if layout is None else {"name": layout.name, **layout.describe()},
        "security": "on" if endpoints.kafka_settings.get("security.protocol", PLAINTEXT) != PLAINTEXT else "off",
        **machine(),
        "disk": {**disk(facts.data_path)},
        "container": {"kind": kind, **allowance(own)},
        "service_limits": {name: {**allowance(each)} for name, each in facts.allowances.items()},
        "commit": commit(checkout),
        "versions": versions(endpoints, checkout, sinks),
        "jvm": jvms(endpoints, facts.command_lines, sinks),
        "plugins": dict(plugins or {}),
        "durability": {"kafka": {**wanted, **broker}},
        "sink_settings": {},
    }


def joined(was: JsonValue, now: JsonValue) -> Any:
    """What is known of two starts of a stack; values that differ as text, as `9.1.0 or 9.2.0`."""
    if isinstance(was, dict) and isinstance(now, dict):
        return {key: joined(was.get(key), now.get(key)) for key in {**was, **now}}
    if was == now or was is None or now is None:
        return now if was is None else was
    return " or ".join(dict.fromkeys(each for value in (was, now) for each in str(value).split(" or ")))


def with_sink(environment: Mapping[str, JsonValue], sink: str, settings: SinkSettings) -> dict[str, JsonValue]:
    """Adds a sink's settings as `durability.<sink>` and `sink_settings.<sink>`; None keeps the earlier value."""
    found = zip(SINK_KEYS, (settings.durability, settings.tuning), strict=True)
    added: dict[str, JsonValue] = joined({**environment}, {key: {sink: {**each}} for key, each in found})
    return added
