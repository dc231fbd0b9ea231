"""A client of Kafka Connect's REST interface that waits for rebalances to end, and what its answers mean."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from sinkbench.analysis.javatrace import causes_in
from sinkbench.errors import ConnectError, StackError
from sinkbench.secrets import redacted
from sinkbench.services.access import Access
from sinkbench.services.failures import maps_exceptions
from sinkbench.services.http import http_client, refuses_certificate
from sinkbench.suggest import did_you_mean

__all__ = [
    "ConnectCluster",
    "ConnectorStatus",
    "Task",
    "Validation",
    "first_cause",
    "is_even",
    "placement",
    "validation_of",
]

REBALANCE_SECONDS = 60.0
POLL_SECONDS = 0.1
_OUT_OF_MEMORY = "java.lang.OutOfMemoryError"
# Hibernate's words when it could not connect. It logs the reason, and asks for settings that change nothing.
_NO_CONNECTION = "Unable to determine Dialect without JDBC metadata"
_IN_THE_LOG = "no connection to the database came about, for a reason that the worker's log tells"
# A task in another state runs, or will as soon as its worker has taken it.
AT_REST = {"PAUSED", "STOPPED", "FAILED", "DESTROYED"}


@dataclass(frozen=True)
class Task:
    """One task: its number, its state in Connect's words, the id of its worker, and its stack trace if it FAILED."""

    number: int
    state: str
    worker_id: str
    trace: str = ""


@dataclass(frozen=True)
class ConnectorStatus:
    """A connector and its tasks as one worker knows them."""

    state: str
    trace: str
    tasks: tuple[Task, ...]

    @property
    def running(self) -> int:
        """Number of tasks in the state RUNNING."""
        return sum(task.state == "RUNNING" for task in self.tasks)

    @property
    def failed(self) -> tuple[Task, ...]:
        """The tasks in the state FAILED."""
        return tuple(task for task in self.tasks if task.state == "FAILED")

    @property
    def out_of_memory(self) -> int:
        """Number of failed tasks whose exception, or one of its causes, is Java's OutOfMemoryError."""
        return sum(
            any(cause.partition(":")[0] == _OUT_OF_MEMORY for cause in causes_in(task.trace)) for task in self.failed
        )

    def settled(self, tasks: int) -> bool:
        """Whether exactly `tasks` tasks exist, and each runs or has failed."""
        done = all(task.state in ("RUNNING", "FAILED") for task in self.tasks)
        return self.state == "RUNNING" and len(self.tasks) == tasks and done

    def cause(self) -> str | None:
        """The first line of the cause of the connector's failure, or of the one that most failed tasks share.

        One that tells nothing counts only where no task tells more.
        """
        if self.state == "FAILED":
            return first_cause(self.trace)
        causes = Counter(first_cause(task.trace) for task in self.failed)
        telling = Counter({cause: tasks for cause, tasks in causes.items() if cause != _IN_THE_LOG})
        return (telling or causes).most_common(1)[0][0] if causes else None


@dataclass(frozen=True)
class Validation:
    """What Connect says of a connector's configuration.

    Attributes:
        listed: every key that the connector, its converters, transforms and clients declare.
        errors: what is wrong with a key, by the key.
        values: the values as the workers' config providers fill them in; without those that are kept secret.
    """

    listed: frozenset[str]
    errors: Mapping[str, tuple[str, ...]]
    values: Mapping[str, str] = field(default_factory=dict, repr=False)


def validation_of(answer: Any) -> Validation:
    """Reads the answer to `PUT /connector-plugins/CLASS/config/validate`.

    Connect answers with a key that a client does not declare, too, but without a definition.
    """
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


def first_cause(trace: str) -> str:
    """The message of the innermost cause in a Java stack trace that has one, without the exception's class.

    A task's trace begins with Connect's own wrappers; what went wrong is in the last "Caused by". If that has no
    message, its class follows in brackets.
    """
    causes = causes_in(trace)
    if not causes:
        return "no trace"
    if _NO_CONNECTION in trace:
        return _IN_THE_LOG
    innermost = causes[-1]
    for cause in reversed(causes):
        name, _, message = cause.partition(": ")
        if " " in name:
            return cause
        if message:
            return message if cause is innermost else f"{message} ({innermost.rpartition('.')[2]})"
    return innermost


def placement(status: ConnectorStatus, worker_ids: Mapping[str, str]) -> dict[str, int]:
    """Number of tasks on each worker, by the worker's name, with 0 for a worker that has none.

    `worker_ids` has the name of each worker by Connect's id; an id that is not in it stands for itself.
    """
    counts = dict.fromkeys(worker_ids.values(), 0)
    for task in status.tasks:
        name = worker_ids.get(task.worker_id, task.worker_id)
        counts[name] = counts.get(name, 0) + 1
    return counts


def is_even(counts: Mapping[str, int]) -> bool:
    """Whether no worker has more than one task more than another."""
    return not counts or max(counts.values()) - min(counts.values()) <= 1


@maps_exceptions(httpx.HTTPError)
class ConnectCluster:
    """The workers of one Connect cluster. Any of them answers for all; the next is asked when one does not answer."""

    def __init__(
        self,
        urls: Iterable[str] | Callable[[], Iterable[str]],
        access: Access | None = None,
        timeout_seconds: float = 20.0,
    ) -> None:
        """
        Args:
            urls: REST addresses of the workers, or of something before them; or what tells them, asked again when none
                of them answers, since a container that is started again may have another.
            access: what they want before they answer.
            timeout_seconds: how long one may take to answer.
        """
        self._find = urls if callable(urls) else None
        self._urls = list(urls() if callable(urls) else urls)
        self._http = http_client(access or Access(), timeout_seconds)

    def __enter__(self) -> ConnectCluster:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes its connections."""
        self._http.close()

    def connectors(self) -> list[str]:
        """Names of all connectors."""
        return [str(name) for name in self._ask("GET", "/connectors").json()]

    def running(self) -> dict[str, int]:
        """How many tasks of each connector run, or are about to; only of those that have such tasks."""
        found = self._ask("GET", "/connectors?expand=status").json()
        states = {str(name): [task["state"] for task in each["status"]["tasks"]] for name, each in found.items()}
        counts = {name: sum(state not in AT_REST for state in each) for name, each in states.items()}
        return {name: count for name, count in counts.items() if count}

    def plugins(self) -> dict[str, str | None]:
        """The sink connectors that the asked worker has found: the version of each, if it has one, by its class."""
        found = self._ask("GET", "/connector-plugins").json()
        return {str(plugin["class"]): plugin.get("version") for plugin in found if plugin["type"] == "sink"}

    def version(self) -> str:
        """The version of the asked worker."""
        return str(self._ask("GET", "/").json()["version"])

    def validate(self, config: Mapping[str, str]) -> Validation:
        """What Connect says of a configuration; nothing is created. It is asked once.

        Raises ConnectError if no worker answers, or the one that does will not or cannot validate it.
        """
        path = f"/connector-plugins/{quote(config['connector.class'], safe='')}/config/validate"
        answer, problem = self._ask_each("PUT", path, dict(config))
        if answer is None or not answer.is_success:
            raise ConnectError(problem if answer is None else f"HTTP {answer.status_code}: {_message(answer)}")
        try:
            return validation_of(answer.json())
        except (ValueError, KeyError, TypeError):
            raise ConnectError("the answer is not Connect's") from None

    def create(self, name: str, config: Mapping[str, str]) -> None:
        """Makes a connector. Raises ConnectError with Connect's own message if it refuses the configuration."""
        self._ask("POST", "/connectors", json={"name": name, "config": dict(config)})

    def config(self, name: str) -> dict[str, str]:
        """A connector's configuration. Raises ConnectError, naming the nearest, if there is no such connector."""
        answer = self._ask("GET", f"/connectors/{name}/config", allow=(404,))
        if answer.status_code == httpx.codes.NOT_FOUND:
            raise ConnectError(f"{name}: no such connector{did_you_mean(name, self.connectors())}")
        return {str(key): str(value) for key, value in answer.json().items()}

    def set_tasks(self, name: str, tasks: int) -> None:
        """Sets `tasks.max` of a running connector."""
        self._ask("PUT", f"/connectors/{name}/config", json={**self.config(name), "tasks.max": str(tasks)})

    def configure(self, name: str, config: Mapping[str, str]) -> None:
        """Gives a connector this configuration, with which its tasks begin anew; makes it if it is not there."""
        self._ask("PUT", f"/connectors/{name}/config", json=dict(config))

    def restart_failed(self, name: str) -> None:
        """Starts the connector's tasks that have FAILED once more; they begin at their last commit."""
        self._ask("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true", allow=(404,))

    def restart(self, name: str) -> None:
        """Starts the connector and all its tasks once more."""
        self._ask("POST", f"/connectors/{name}/restart?includeTasks=true")

    def pause(self, name: str) -> None:
        """Has the connector's tasks keep their partitions and read nothing. Returns before they all do."""
        self._ask("PUT", f"/connectors/{name}/pause")

    def resume(self, name: str) -> None:
        """Lets a paused connector go on."""
        self._ask("PUT", f"/connectors/{name}/resume")

    def delete(self, name: str) -> None:
        """Deletes a connector; one that is not there is fine. Its tasks may still run for a moment."""
        self._ask("DELETE", f"/connectors/{name}", allow=(404,))

    def status(self, name: str) -> ConnectorStatus | None:
        """The connector and its tasks; None while Connect knows no such connector."""
        answer = self._ask("GET", f"/connectors/{name}/status", allow=(404,))
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        body = answer.json()
        tasks = (Task(int(t["id"]), t["state"], t["worker_id"], t.get("trace", "")) for t in body["tasks"])
        return ConnectorStatus(body["connector"]["state"], body["connector"].get("trace", ""), tuple(tasks))

    def wait_for_tasks(self, name: str, tasks: int, timeout_seconds: float = 90.0) -> ConnectorStatus:
        """The status once exactly `tasks` tasks exist and none is still to start; tasks may have FAILED.

        Raises ConnectError, which says in which states tasks are, if that takes longer than `timeout_seconds`.
        """
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

    def wait_until_gone(self, name: str, timeout_seconds: float = 60.0) -> None:
        """Waits until Connect has no status of the connector any more. Raises ConnectError if that takes too long."""
        deadline = time.monotonic() + timeout_seconds
        while self.status(name) is not None:
            if time.monotonic() > deadline:
                raise ConnectError(f"{name}: still there {timeout_seconds:.0f} s after it was deleted")
            time.sleep(POLL_SECONDS)

    def _ask(self, method: str, path: str, json: Any = None, allow: tuple[int, ...] = ()) -> httpx.Response:
        """One request, repeated while the cluster rebalances (409) and at the next worker where one does not answer."""
        deadline = time.monotonic() + REBALANCE_SECONDS
        while True:
            answer, problem = self._ask_each(method, path, json)
            if answer is not None:
                if answer.is_success or answer.status_code in allow:
                    return answer
                problem = _message(answer)
                # 409 also says that a connector of that name exists, which no waiting changes.
                rebalancing = answer.status_code == httpx.codes.CONFLICT and "already exists" not in problem
                # A worker that does not lead forwards to the leader, and says 500 when it is gone.
                forwarding = answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR and "forward" in problem.lower()
                if not rebalancing and not forwarding:
                    raise ConnectError(f"Connect refused {method} {path} (HTTP {answer.status_code}): {problem}")
            if time.monotonic() > deadline:
                raise ConnectError(f"Connect did not take {method} {path} in {REBALANCE_SECONDS:.0f} s: {problem}")
            time.sleep(POLL_SECONDS * 3)

    def _ask_each(self, method: str, path: str, json: Any) -> tuple[httpx.Response | None, str]:
        problem, refused = "no worker is known", []
        for url in list(self._urls):
            try:
                return self._http.request(method, url + path, json=json), ""
            except httpx.TransportError as error:
                problem = f"{url}: {error or type(error).__name__}"
                refused.append(refuses_certificate(error))
                # Ask it last from now on.
                self._urls.remove(url)
                self._urls.append(url)
        if refused and all(refused):
            # No waiting changes that.
            raise ConnectError(problem)
        if self._find is not None:
            # The next one to ask may be new.
            with suppress(StackError):
                self._urls = list(self._find()) or self._urls
        return None, problem


def _message(answer: httpx.Response) -> str:
    try:
        text = str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        text = answer.text
    # Before it is cut: half a secret would not be found any more.
    return " ".join(redacted(text).split())[:500]
