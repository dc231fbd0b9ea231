"""A password in a connector's configuration is in no log of any service, also where the connection is refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from sinkbench.plan.files import read_connector
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.stack.local import LocalStack

PASSWORD = "swordfish-of-the-logs"  # noqa: S105
ROLE = "bench_logs"
TOPIC = "logged_secrets"
SETTLED = ("RUNNING", "FAILED")


@pytest.fixture
def role(stack: LocalStack, kafka: Kafka) -> Iterator[str]:
    """A user of PostgreSQL, and the topic of the connectors."""
    address = stack.endpoints.sinks["postgres"].address
    kafka.create_topic(TOPIC, 1)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")
        yield ROLE
        connection.execute(f"DROP ROLE {ROLE}")
    kafka.delete_topic(TOPIC)


@pytest.fixture
def said(stack: LocalStack) -> Callable[[], dict[str, str]]:
    """What each service has logged since."""
    folder = stack.settings.home / "log"
    # The logs of earlier tests stay.
    before = {path.name: path.stat().st_size for path in folder.iterdir()}
    return lambda: {path.name: path.read_bytes()[before[path.name] :].decode() for path in folder.iterdir()}


def settled(connect: ConnectCluster, name: str) -> str:
    """What becomes of the connector's task."""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        status = connect.status(name)
        states = [task.state for task in status.tasks] if status is not None else []
        if states and all(state in SETTLED for state in states):
            return states[0]
        time.sleep(0.2)
    raise AssertionError(f"{name} did not settle")


@pytest.mark.parametrize("pipeline", ["postgres/jdbc", "postgres/camel-sql"])
def test_no_log_holds_the_password_of_a_connector(
    pipeline: str, stack: LocalStack, role: str, said: Callable[[], dict[str, str]]
) -> None:
    config = read_connector(CHECKOUT / "connectors" / f"{pipeline}.json")
    known = {"POSTGRES_USER": role, "POSTGRES_PASSWORD": PASSWORD, "POSTGRES_DB": "sinkbench"}
    for name, value in known.items():
        config = {key: str(found).replace(f"${{env:{name}}}", value) for key, found in config.items()}
    url = next(key for key in config if key.endswith(".url") and config[key].startswith("jdbc:"))
    wrong = {**config, url: config[url].replace("${env:POSTGRES_PORT}", "1") + f"&password={PASSWORD}&user={role}"}
    with ConnectCluster(stack.endpoints.connect.values()) as connect:
        for number, each in enumerate((config, wrong)):
            name = f"logged-secrets-{number}"
            connect.create(name, {**each, "topics": TOPIC, "tasks.max": "1"})
            settled(connect, name)
            connect.delete(name)
            connect.wait_until_gone(name)
    logs = said()
    assert "logged-secrets-1" in "".join(logs.values())
    assert [name for name, text in logs.items() if PASSWORD in text] == []
