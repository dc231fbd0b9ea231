"""Load generators as services, with a real broker: they share a load, and whatever dies leaves nothing going on."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from sinkbench.errors import TrialFailed
from sinkbench.load.loadgens import Loadgens
from sinkbench.plan.plan import PlanLoad
from sinkbench.services.access import Access
from sinkbench.services.kafka import Kafka
from sinkbench.stack import Endpoints
from tests.e2e.topics import records_of
from tests.support.commands import refuses
from tests.support.endpoints import endpoints as kafka_alone
from tests.support.tlsserver import issue
from tests.support.waiting import until

ADDRESS = "loadgen: listening on "
# More than can be produced before a test has had its way; the load never comes to its end.
ENDLESS = 50_000_000


class Service:
    """A process of `loadgen serve`, or of a command that starts one."""

    def __init__(self, *command: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        self.url = self.process.stdout.readline().strip().removeprefix(ADDRESS)

    @property
    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"{self.url}/load", trust_env=False).json()
        return found

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        self.process.communicate(timeout=30)
        return self.process.returncode


@pytest.fixture
def services() -> Iterator[list[Service]]:
    """Three load generators."""
    command = [sys.executable, "-m", "loadgen", "serve", "--listen", "127.0.0.1:0"]
    started = [Service(*command) for _ in range(3)]
    yield started
    for each in started:
        each.end(signal.SIGKILL)


def endpoints(bootstrap: str, *services: Service, **more: Any) -> Endpoints:
    urls = {f"loadgen-{number}": each.url for number, each in enumerate(services, start=1)}
    return kafka_alone(bootstrap, loadgens=urls, **more)


def seqs(kafka: Kafka, topic: str) -> Counter[int]:
    """How often each seq is in the topic."""
    return Counter(json.loads(each.value())["bench"]["seq"] for each in records_of(kafka, topic))


def load(partitions: int = 6) -> PlanLoad:
    return PlanLoad(partitions=partitions, record_bytes=512, keys=300)


def test_three_share_a_load_and_every_seq_is_in_the_topic_once(
    services: list[Service], bootstrap: str, kafka: Kafka, topic: str
) -> None:
    shown: list[int] = []
    with Loadgens(endpoints(bootstrap, *services)) as loadgens:
        parts = loadgens.load(topic, "shared", 100_000, load(), shown.append)
    assert sum(each.sent for each in parts) == sum(each.acknowledged for each in parts) == 100_000
    assert shown == sorted(shown)
    assert shown[-1] == 100_000
    assert seqs(kafka, topic) == Counter(range(100_000))
    assert sorted(each.first_seq for each in parts) == [0, 33_334, 66_667]


def test_three_that_create_one_topic_at_once_come_to_one_topic(
    services: list[Service], bootstrap: str, kafka: Kafka
) -> None:
    with Loadgens(endpoints(bootstrap, *services)) as loadgens:
        for attempt in range(3):
            topic = f"loadgen-{uuid.uuid4().hex}"
            loadgens.load(topic, f"race-{attempt}", 30, load(partitions=12), lambda _: None)
            assert len(kafka.end_offsets(topic)) == 12
            assert sum(kafka.end_offsets(topic).values()) == 30
            kafka.delete_topic(topic)


def test_one_that_is_killed_is_named_and_the_others_are_cancelled(
    services: list[Service], bootstrap: str, kafka: Kafka, topic: str
) -> None:
    def kill(acknowledged: int) -> None:
        if acknowledged and services[1].process.poll() is None:
            services[1].end(signal.SIGKILL)

    with (
        Loadgens(endpoints(bootstrap, *services)) as loadgens,
        pytest.raises(TrialFailed, match=r"loadgen-2 died at [\d,]+ of 16,666,667 records$"),
    ):
        loadgens.load(topic, "killed", ENDLESS, load(), kill)
    for each in (services[0], services[2]):
        assert each.state["state"] == "cancelled"
        assert each.state["summary"]["sent"] < ENDLESS // 3
    stored = sum(kafka.end_offsets(topic).values())
    time.sleep(0.5)
    assert sum(kafka.end_offsets(topic).values()) == stored


def test_one_that_is_busy_is_named_and_goes_on_with_its_own_load(
    services: list[Service], bootstrap: str, topic: str
) -> None:
    body = {"bootstrap": bootstrap, "topic": topic, "run": "mine", "rate": 10, "duration_seconds": 600}
    assert httpx.post(f"{services[2].url}/load", json=body, trust_env=False).status_code == 201
    with (
        Loadgens(endpoints(bootstrap, *services)) as loadgens,
        pytest.raises(TrialFailed, match=rf"loadgen-3 is busy: run mine is being loaded into topic {topic}"),
    ):
        loadgens.load(topic, "other", ENDLESS, load(), lambda _: None)
    assert services[2].state["state"] == "running"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_a_service_and_its_load(
    services: list[Service], bootstrap: str, kafka: Kafka, topic: str, number: int, code: int
) -> None:
    body = {"bootstrap": bootstrap, "topic": topic, "rate": 1000, "duration_seconds": 600, "partitions": 1}
    httpx.post(f"{services[0].url}/load", json=body, trust_env=False)
    until(lambda: (services[0].state["progress"] or {}).get("acknowledged", 0) > 0)
    assert services[0].end(number) == code
    assert set(seqs(kafka, topic).values()) == {1}


def test_an_address_that_is_taken_is_one_line_and_exit_code_2(services: list[Service]) -> None:
    taken = services[0].url.removeprefix("http://")
    command = [sys.executable, "-m", "loadgen", "serve", "--listen", taken]
    refused = refuses(subprocess.run(command, capture_output=True, text=True, check=False, timeout=60))
    assert f"listen: {taken} cannot be listened on (Address already in use)" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert refused.stdout == ""


def test_on_a_network_it_takes_a_load_of_its_user_alone(
    bootstrap: str, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    files, users = issue(tmp_path), tmp_path / "users"
    users.touch(mode=0o600)
    users.write_text("bench:hunter2-hunter2\n")
    service = Service(
        *(sys.executable, "-m", "loadgen", "serve", "--listen", "0.0.0.0:0", "--users", str(users)),
        *("--tls-certificate", str(files.certificate), "--tls-key", str(files.key)),
    )
    url = service.url.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
    access = Access(user="bench", password="hunter2-hunter2", ca=files.ca)  # noqa: S106
    try:
        with Loadgens(kafka_alone(bootstrap, loadgens={"loadgen-1": url}, loadgen_access=access)) as loadgens:
            assert loadgens.load(topic, "secured", 1_000, load(), lambda _: None)[0].acknowledged == 1_000
        assert seqs(kafka, topic) == Counter(range(1_000))
        other = replace(access, password="wrong-wrong")  # noqa: S106
        with (
            Loadgens(kafka_alone(bootstrap, loadgens={"loadgen-1": url}, loadgen_access=other)) as loadgens,
            pytest.raises(TrialFailed, match="refuses user and password"),
        ):
            loadgens.load(topic, "other", 1_000, load(), lambda _: None)
        assert not any("hunter2" in argument for argument in psutil.Process(service.process.pid).cmdline())
    finally:
        assert service.end(signal.SIGTERM) == 0


def children(of: psutil.Process | None = None) -> list[psutil.Process]:
    """The load generators that a process has started, without their parent."""
    workers: dict[psutil.Process, int] = {}
    for each in (of or psutil.Process()).children(recursive=True):
        # It may have ended meanwhile.
        with suppress(psutil.Error):
            if "sinkbench.services.worker" in each.cmdline():
                workers[each] = each.ppid()
    return [each for each, parent in workers.items() if parent in {other.pid for other in workers}]


def test_without_services_a_child_does_it_and_is_gone_after_close(bootstrap: str, kafka: Kafka, topic: str) -> None:
    seen: list[psutil.Process] = []
    with Loadgens(endpoints(bootstrap, kafka_settings={"client.rack": "a-secret"})) as loadgens:
        for run in ("first", "second"):
            [part] = loadgens.load(topic, run, 1_000, load(), lambda _: seen.extend(children()))
            assert part.acknowledged == 1_000
        until(lambda: children() == [])
        [parent] = psutil.Process().children()
        parent.kill()
        until(lambda: parent.status() == psutil.STATUS_ZOMBIE)
        assert loadgens.load(topic, "third", 1_000, load(), lambda _: None)[0].acknowledged == 1_000
    assert psutil.Process().children() == []
    assert seen
    assert seqs(kafka, topic) == Counter(dict.fromkeys(range(1_000), 3))


def test_a_child_that_is_killed_is_reported(bootstrap: str, topic: str) -> None:
    def kill(acknowledged: int) -> None:
        if acknowledged:
            for each in children():
                assert not any("a-secret" in argument for argument in each.cmdline())
                each.kill()

    with (
        Loadgens(endpoints(bootstrap, kafka_settings={"client.rack": "a-secret"})) as loadgens,
        pytest.raises(TrialFailed, match=r"loadgen died at [\d,]+ of 50,000,000 records"),
    ):
        loadgens.load(topic, "killed", ENDLESS, load(), kill)


PARENT = """
import sys
from sinkbench.load.loadgens import Loadgens
from sinkbench.plan.plan import PlanLoad
from sinkbench.stack import Endpoints

kafka, topic, records = sys.argv[1], sys.argv[2], int(sys.argv[3])
where = Endpoints(kafka, {}, {})
Loadgens(where).load(topic, "orphan", records, PlanLoad(partitions=1), lambda n: n and print(n, flush=True))
"""


def test_a_child_is_gone_and_loads_no_more_after_its_parent_is_killed(bootstrap: str, kafka: Kafka, topic: str) -> None:
    command = [sys.executable, "-c", PARENT, bootstrap, topic, str(ENDLESS)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert int(parent.stdout.readline()) > 0
    [child] = children(psutil.Process(parent.pid))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until(lambda: not child.is_running())
    assert 0 < sum(kafka.end_offsets(topic).values()) < ENDLESS
