"""A password in a connector's configuration is in no log of any service, also where the connection is refused."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka
from sinkbench.stack.local import LocalStack
from tests.e2e.races import remove_connectors
from tests.support.trials import config_of
from tests.support.waiting import until

PASSWORD = "swordfish-of-the-logs"  # noqa: S105
ROLE = "bench_logs"
TOPIC = "logged_secrets"


@pytest.fixture
def role(database: psycopg.Connection, kafka: Kafka) -> Iterator[str]:
    """A user of PostgreSQL, and the topic of the connectors."""
    kafka.create_topic(TOPIC, 1)
    database.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")
    yield ROLE
    database.execute(f"DROP ROLE {ROLE}")
    kafka.delete_topic(TOPIC)


@pytest.fixture
def said(stack: LocalStack) -> Callable[[], dict[str, str]]:
    """What each service has logged since."""
    folder = stack.settings.home / "log"
    # The logs of earlier tests stay.
    before = {path.name: path.stat().st_size for path in folder.iterdir()}
    return lambda: {path.name: path.read_bytes()[before[path.name] :].decode() for path in folder.iterdir()}


@pytest.mark.long
@pytest.mark.parametrize("pipeline", ["postgres/jdbc", "postgres/camel-sql"])
def test_no_log_holds_the_password_of_a_connector(
    pipeline: str, role: str, said: Callable[[], dict[str, str]], connect: ConnectCluster, kafka: Kafka
) -> None:
    config = config_of(pipeline)
    known = {"POSTGRES_USER": role, "POSTGRES_PASSWORD": PASSWORD, "POSTGRES_DB": "sinkbench"}
    for name, value in known.items():
        config = {key: str(found).replace(f"${{env:{name}}}", value) for key, found in config.items()}
    url = next(key for key in config if key.endswith(".url") and config[key].startswith("jdbc:"))
    wrong = {**config, url: config[url].replace("${env:POSTGRES_PORT}", "1") + f"&password={PASSWORD}&user={role}"}
    names = ("logged-secrets-0", "logged-secrets-1")
    for name, each in zip(names, (config, wrong), strict=True):
        connect.create(name, {**each, "topics": TOPIC, "tasks.max": "1"})
    for name in names:
        until(lambda name=name: (status := connect.status(name)) is not None and status.settled(1))
    remove_connectors(connect, kafka, *names)
    logs = said()
    assert "logged-secrets-1" in "".join(logs.values())
    assert [name for name, text in logs.items() if PASSWORD in text] == []
