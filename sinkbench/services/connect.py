"""A client of Kafka Connect's REST interface that waits for rebalances to end, and its answers."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote

import httpx

from sinkbench.errors import ConnectError, StackError
from sinkbench.secrets import quoted, redacted
from sinkbench.services.access import Access
from sinkbench.services.failures import maps_exceptions
from sinkbench.services.http import http_client, refuses_certificate
from sinkbench.suggest import did_you_mean

REBALANCE_SECONDS = 60.0
POLL_SECONDS = 0.1
# A task in another state runs, or will when its worker has started it.
AT_REST = {"PAUSED", "STOPPED", "FAILED", "DESTROYED"}


@dataclass(frozen=True)
class Task:
    """One task: its number, Connect's state, the id of its worker, and its stack trace if it FAILED."""

    number: int
    state: str
    worker_id: str
    trace: str = ""


@dataclass(frozen=True)
class ConnectorStatus:
    state: str
    trace: str
    tasks: tuple[Task, ...]

    @property
    def running(self) -> int:
        return sum(task.state == "RUNNING" for task in self.tasks)

    @property
    def failed(self) -> tuple[Task, ...]:
        return tuple(task for task in self.tasks if task.state == "FAILED")

    @property
    def traces(self) -> list[str]:
        """The stack trace of a FAILED connector, or those of its failed tasks, the most common first."""
        found = Counter(task.trace for task in self.failed)
        return [self.trace] if self.state == "FAILED" else [trace for trace, _ in found.most_common()]

    def settled(self, tasks: int) -> bool:
        """Whether exactly `tasks` tasks exist, and each runs or has failed."""
        done = all(task.state in ("RUNNING", "FAILED") for task in self.tasks)
        return self.state == "RUNNING" and len(self.tasks) == tasks and done


@dataclass(frozen=True)
class Validation:
    """Connect's answer: declared keys, errors by key, and values as config providers resolve them, without secrets."""

    listed: frozenset[str]
    errors: Mapping[str, tuple[str, ...]]
    values: Mapping[str, str] = field(default_factory=dict, repr=False)


def validation_of(answer: Any) -> Validation:
    """Parses the answer to `PUT /connector-plugins/CLASS/config/validate`, where undeclared keys have no definition."""
    listed, errors, values = set(), {}, {}
    for each in answer["configs"]:
        name, definition, said = str(each["value"]["name"]), each.get("definition"), each["value"]
        if definition is not None:
            listed.add(name)
        if said.get("errors"):
            errors[name] = tuple(" ".join(redacted(str(error)).split()) for error in said["errors"])
        if isinstance(said.get("value"), str) and (definition or {}).get("type") != "PASSWORD":
            values[name] = said["value"]
    return Validation(frozenset(listed), errors, values)


def placement(status: ConnectorStatus, worker_ids: Mapping[str, str]) -> dict[str, int]:
    """Returns the number of tasks on each worker by name, 0 included; an unknown id is its own name."""
    counts = Counter(dict.fromkeys(worker_ids.values(), 0))
    counts.update(worker_ids.get(task.worker_id, task.worker_id) for task in status.tasks)
    return dict(counts)


def is_even(counts: Mapping[str, int]) -> bool:
    """Whether the workers' numbers of tasks differ by at most one."""
    return not counts or max(counts.values()) - min(counts.values()) <= 1


class Changes(Protocol):
    """Changes connectors where REST may not."""

    def __call__(self, method: str, path: str, body: Any) -> bool:
        """Does what this request would. Returns False if REST is to do it; raises ConnectError."""

    def names(self) -> list[str]:
        """The connectors that are declared, also those that Connect does not have yet."""


@maps_exceptions(httpx.HTTPError)
class ConnectCluster(AbstractContextManager["ConnectCluster"]):
    """The workers of one Connect cluster. Any of them answers for all; if one does not answer, the next is asked."""

    def __init__(
        self, urls: Iterable[str] | Callable[[], Iterable[str]], access: Access | None = None, timeout: float = 20.0
    ) -> None:
        """`urls` may be a function, which is called again if no worker answers: addresses of containers change."""
        self._find = urls if callable(urls) else None
        self._urls = list(urls() if callable(urls) else urls)
        self._http = http_client(access or Access(), timeout)
        self.patience_seconds = REBALANCE_SECONDS
        self.changes: Changes | None = None

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def all_answer(self) -> bool:
        """Whether every worker answers at once."""
        with suppress(httpx.HTTPError):
            return all(self._http.get(url, timeout=1.0).is_success for url in self._urls)
        return False

    def connectors(self) -> list[str]:
        return [str(name) for name in self._ask("GET", "/connectors").json()]

    def only_declared(self) -> list[str]:
        """The connectors that Connect does not have yet, or never will."""
        return [] if self.changes is None else sorted({*self.changes.names()} - {*self.connectors()})

    def running(self) -> dict[str, int]:
        """Returns how many tasks of each connector run or are about to, for connectors with such tasks."""
        found = self._ask("GET", "/connectors?expand=status").json()
        states = {str(name): [task["state"] for task in each["status"]["tasks"]] for name, each in found.items()}
        counts = {name: sum(state not in AT_REST for state in each) for name, each in states.items()}
        return {name: count for name, count in counts.items() if count}

    def plugins(self) -> dict[str, list[str | None]]:
        """Returns the versions of each sink connector of the worker that answers, by class."""
        versions: dict[str, list[str | None]] = {}
        for plugin in self._ask("GET", "/connector-plugins").json():
            if plugin["type"] == "sink":
                versions.setdefault(str(plugin["class"]), []).append(plugin.get("version"))
        return versions

    def version(self) -> str:
        return str(self._ask("GET", "/").json()["version"])

    def validate(self, config: Mapping[str, str]) -> Validation:
        """Validates a configuration without retries; creates nothing. Raises ConnectError if no worker validates it."""
        path = f"/connector-plugins/{quote(config['connector.class'], safe='')}/config/validate"
        answer, problem = self._ask_each("PUT", path, dict(config))
        if answer is None or not answer.is_success:
            raise ConnectError(problem if answer is None else f"HTTP {answer.status_code}: {_message(answer)}")
        try:
            return validation_of(answer.json())
        except (ValueError, KeyError, TypeError):
            raise ConnectError("the answer is not Connect's") from None

    def create(self, name: str, config: Mapping[str, str]) -> None:
        """Creates a connector. Raises ConnectError with Connect's message if it rejects the configuration."""
        self._ask("POST", "/connectors", json={"name": name, "config": dict(config)})

    def config(self, name: str) -> dict[str, str]:
        """Returns a connector's configuration. Raises ConnectError, with the nearest name, if there is none."""
        answer = self._ask("GET", f"/connectors/{name}/config", allow=(404,))
        if answer.status_code == httpx.codes.NOT_FOUND:
            raise ConnectError(f"{name}: no such connector{did_you_mean(name, self.connectors())}")
        return {str(key): str(value) for key, value in answer.json().items()}

    def set_tasks(self, name: str, tasks: int) -> None:
        self.configure(name, {**self.config(name), "tasks.max": str(tasks)})

    def configure(self, name: str, config: Mapping[str, str]) -> None:
        """Creates or reconfigures a connector; its tasks restart."""
        self._ask("PUT", f"/connectors/{name}/config", json=dict(config))

    def restart_failed(self, name: str) -> None:
        """Restarts the connector's FAILED tasks, which continue from their last commit."""
        self._ask("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true", allow=(404,))

    def restart(self, name: str) -> None:
        self._ask("POST", f"/connectors/{name}/restart?includeTasks=true")

    def pause(self, name: str) -> None:
        """Makes the connector's tasks keep their partitions and read nothing. Returns before all of them do."""
        self._ask("PUT", f"/connectors/{name}/pause")

    def resume(self, name: str) -> None:
        self._ask("PUT", f"/connectors/{name}/resume")

    def delete(self, name: str) -> None:
        """Deletes a connector if it exists. Its tasks may still run for a moment."""
        self._ask("DELETE", f"/connectors/{name}", allow=(404,))

    def status(self, name: str) -> ConnectorStatus | None:
        """None while Connect knows no such connector."""
        answer = self._ask("GET", f"/connectors/{name}/status", allow=(404,))
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        body = answer.json()
        tasks = (Task(int(t["id"]), t["state"], t["worker_id"], t.get("trace", "")) for t in body["tasks"])
        return ConnectorStatus(body["connector"]["state"], body["connector"].get("trace", ""), tuple(tasks))

    def wait_for_tasks(self, name: str, tasks: int, timeout_seconds: float = 90.0) -> ConnectorStatus:
        """Returns the status once `tasks` tasks exist and each runs or has FAILED, else raises ConnectError."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            status = self.status(name)
            if status is not None and (status.state == "FAILED" or status.settled(tasks)):
                return status
            if time.monotonic() > deadline:
                there = [] if status is None else sorted(task.state for task in status.tasks)
                states = ", ".join(there) or ("no status" if status is None else "no task")
                raise ConnectError(f"{name}: {tasks} tasks asked, after {timeout_seconds:.0f} s there are: {states}")
            time.sleep(POLL_SECONDS)

    def wait_until_gone(self, name: str) -> None:
        """Waits until Connect has no status of the connector. Raises ConnectError after `patience_seconds`."""
        started = time.monotonic()
        while self.status(name) is not None:
            if time.monotonic() - started > self.patience_seconds:
                raise ConnectError(f"{name}: still there {self.patience_seconds:.0f} s after it was deleted")
            time.sleep(POLL_SECONDS)

    def _ask(self, method: str, path: str, json: Any = None, allow: tuple[int, ...] = ()) -> httpx.Response:
        """One request, repeated while the cluster rebalances (409), and at the next worker if one does not answer."""
        if method != "GET" and self.changes is not None and self.changes(method, path, json):
            return httpx.Response(httpx.codes.NO_CONTENT)
        started = time.monotonic()
        while True:
            answer, problem = self._ask_each(method, path, json)
            if answer is not None:
                if answer.is_success or answer.status_code in allow:
                    return answer
                problem = _message(answer)
                # 409 also says that a connector of that name exists, which waiting does not change.
                rebalancing = answer.status_code == httpx.codes.CONFLICT and "already exists" not in problem
                # A worker that is not the leader forwards to it, and answers 500 if it is gone.
                forwarding = answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR and "forward" in problem.lower()
                if not rebalancing and not forwarding:
                    raise ConnectError(f"Connect refused {method} {path} (HTTP {answer.status_code}): {problem}")
            # An interrupt may shorten it meanwhile.
            if time.monotonic() - started > self.patience_seconds:
                raise ConnectError(f"Connect did not take {method} {path} in {self.patience_seconds:.0f} s: {problem}")
            time.sleep(POLL_SECONDS * 3)

    def _ask_each(self, method: str, path: str, json: Any) -> tuple[httpx.Response | None, str]:
        problem, refused = "no worker is known", []
        for url in list(self._urls):
            try:
                return self._http.request(method, url + path, json=json), ""
            except httpx.TransportError as error:
                problem = f"{url}: {error or type(error).__name__}"
                refused.append(refuses_certificate(error))
                self._urls.remove(url)
                self._urls.append(url)
        if refused and all(refused):
            raise ConnectError(problem)
        if self._find is not None:
            with suppress(StackError):
                self._urls = list(self._find()) or self._urls
        return None, problem


def _message(answer: httpx.Response) -> str:
    try:
        text = str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        text = answer.text
    return quoted(text, 500)
