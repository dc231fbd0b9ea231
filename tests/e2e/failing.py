"""Connectors that fail, all at the same time, and what is said of each."""

from collections.abc import Callable, Mapping
from contextlib import suppress

from sinkbench.errors import ConnectError
from sinkbench.services.causes import failure
from sinkbench.services.connect import ConnectCluster
from sinkbench.stack.local import LocalStack
from sinkbench.stack.logs import logs_of
from tests.e2e.races import at_once
from tests.support.waiting import until

TOPIC, URL = "reasons", "connection.url"
Configs = Mapping[str, dict[str, str]]


def changed(config: dict[str, str], old: str, new: str, key: str = URL) -> dict[str, str]:
    assert old in config[key]
    return {**config, key: config[key].replace(old, new)}


def few(config: dict[str, str]) -> dict[str, str]:
    """With one task and one connection."""
    pool = {"connection.pool.min_size": "1", "connection.pool.max_size": "1"} if "insert.mode" in config else {}
    return {**config, "topics": config["topics"].replace("tides", TOPIC), "tasks.max": "1", **pool}


def told(
    stack: LocalStack, connect: ConnectCluster, configs: Configs, meanwhile: Callable[[], None] = lambda: None
) -> dict[str, str]:
    """What is said of each, with the words of who refuses it, or that it has not failed."""
    found: dict[str, str] = {}
    running = {f"reasons-{name}": few(config) for name, config in configs.items()}

    def create(name: str) -> None:
        try:
            connect.create(name, running[name])
        except ConnectError as error:
            found[name] = f"not created: {error}"

    at_once(create, running)
    running = {name: config for name, config in running.items() if name not in found}
    meanwhile()

    def fails(name: str) -> bool:
        return (status := connect.status(name)) is not None and bool(status.traces)

    with suppress(AssertionError):
        until(lambda: all(map(fails, running)), 90)
    for name, config in running.items():
        status = connect.status(name)
        said = None if status is None else failure(status, config, *logs_of(stack, name))
        found[name] = said or f"has not failed: {status}"
    return {name: found[f"reasons-{name}"] for name in configs}
