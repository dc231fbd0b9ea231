"""The driver of clusters in a Kubernetes namespace (docs/kubernetes.md). It writes what it finds there as a stack file,
and adds to `external` what the API and the kubelets tell: CPU time, memory, restarts and logs of pods."""

import atexit
import contextlib
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import urllib3
import websocket
from kubernetes.client import ApiClient, ApiException, Configuration, CoreV1Api
from kubernetes.config import list_kube_config_contexts, load_incluster_config, load_kube_config
from kubernetes.stream import stream
from kubernetes.stream.ws_client import WSClient
from kubernetes.utils.quantity import parse_quantity

from sinkbench.errors import StackError
from sinkbench.stack import Allowance, Facts, Faults, ServiceState, Usage
from sinkbench.stack.assembly import LOG_LINES, Check, at_once, await_ready, checks
from sinkbench.stack.connectors import KafkaConnectors
from sinkbench.stack.external import ExternalStack
from sinkbench.stack.operators import PODS, NotThere, Object, find, labelled, name_of
from sinkbench.stack.podjvms import COMMAND, PodJvms
from sinkbench.topology import service_of

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
READY_SECONDS, SIGNAL_SECONDS, ANSWER_SECONDS, KUBELET_SECONDS = 240.0, 10.0, 10.0, 1.0
# Of the connections to shells, which have no such setting.
websocket.setdefaulttimeout(ANSWER_SECONDS)
# Evicted pods have failed, and stay.
RUNS = [("fieldSelector", "status.phase!=Failed,status.phase!=Succeeded")]
PRIMARY = {"cnpg.io/instanceRole": "primary"}
SIGNALS = {"kill": "KILL", "stop": "TERM", "freeze": "STOP", "thaw": "CONT"}


class Api:
    """Objects of one namespace, as the API writes them."""

    def __init__(self, namespace: str) -> None:
        """`namespace` may be empty: then it is this pod's, or that of the kubeconfig. Raises StackError."""
        try:
            if (config := os.environ.get("KUBECONFIG")) is None and NAMESPACE_FILE.exists():
                load_incluster_config()
                found = NAMESPACE_FILE.read_text(encoding="utf-8")
            else:
                load_kube_config(config)
                found = list_kube_config_contexts(config)[1]["context"].get("namespace", "default")
            self.namespace = namespace or found
        except Exception as error:  # noqa: BLE001 - the client fails in many ways at a file that is no kubeconfig
            said = " ".join(str(error).split()).rstrip(".")
            raise StackError(f"--stack kubernetes: no kubeconfig ({said}); set KUBECONFIG or run in a pod") from None
        configuration = Configuration.get_default_copy()
        # The client would ask a slow server four times.
        configuration.retries = False
        self._client = ApiClient(configuration)

    @cached_property
    def _roots(self) -> dict[str, str]:
        """Of each API group, in the version that the server prefers."""
        groups = self.call("/apis")["groups"]
        return {"": "api/v1", **{each["name"]: f"apis/{each['preferredVersion']['groupVersion']}" for each in groups}}

    def call(self, path: str, method: str = "GET", *, seconds: float = ANSWER_SECONDS, **more: Any) -> Any:
        """Raises StackError, which names verb and resource if the account lacks a right."""
        with api_errors():
            return self._client.call_api(
                path,
                method,
                auth_settings=["BearerToken"],
                response_type="object",
                _return_http_data_only=True,
                # The client takes one number only if it is an int.
                _request_timeout=(seconds, seconds),
                **more,
            )

    def path(self, resource: str) -> str:
        """The address of `pods`, `kafkas.kafka.strimzi.io` or `secrets/NAME`. Raises NotThere without its API group."""
        kind, _, name = resource.partition("/")
        plural, _, group = kind.partition(".")
        if group not in self._roots:
            raise NotThere(f"Kubernetes: has no {kind}; install their operator")
        return f"/{self._roots[group]}/namespaces/{self.namespace}/{plural}{name and f'/{name}'}"

    def list(self, resource: str) -> Sequence[Object]:
        """Returns the objects of a resource, as in `path`; none if there is no such."""
        try:
            found = self.call(self.path(resource), query_params=RUNS if resource == PODS else [])
        except NotThere:
            return []
        return found.get("items", [found])  # type: ignore[no-any-return]

    def shell(self, pod: Object, command: str, **streams: bool) -> WSClient:
        """Runs a command in a pod's first container. Its connection ends when its result is forgotten."""
        container, name = pod["spec"]["containers"][0]["name"], name_of(pod)
        asked = {"container": container, "command": ["sh", "-c", command], "_preload_content": False, **streams}
        with api_errors(), ApiClient() as clients:
            call = CoreV1Api(clients).connect_get_namespaced_pod_exec
            opened = stream(call, name, self.namespace, **asked)
            # It refers to itself and to this, so that both would stay.
            clients.last_response = None
        # Its own `close` leaves a socket open that the other side has closed.
        weakref.finalize(opened, opened.sock.shutdown)
        return opened


@contextlib.contextmanager
def api_errors() -> Iterator[None]:
    try:
        yield
    except ApiException as error:
        said = error.reason
        with contextlib.suppress(ValueError, TypeError, KeyError):
            said = json.loads(error.body)["message"]
        raise (NotThere if error.status == HTTPStatus.NOT_FOUND else StackError)(f"Kubernetes: {said}") from None
    except urllib3.exceptions.HTTPError as error:
        raise StackError(
            f"Kubernetes: its API does not answer: {getattr(error, 'reason', error)}; check KUBECONFIG"
        ) from None


class KubernetesStack(ExternalStack):
    def __init__(self, namespace: str = "") -> None:
        """Raises StackError if the namespace lacks a cluster, or this account a right."""
        self._api = Api(namespace)
        self.name = f"kubernetes:{self._api.namespace}"
        self._folder = Path(tempfile.mkdtemp(prefix="sinkbench-kubernetes-"))
        atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        self._pods: Mapping[str, str] = {}
        self._jvms = PodJvms(partial(self._api.shell, command=COMMAND, stdin=True, stdout=True, stderr=False))
        self._discover()

    def _discover(self) -> None:
        """Reads addresses, credentials and pods, which change with a pod. StackError until all are there again."""
        found, path = find(self._api.namespace, self._api.list), self._folder / "stack.yaml"
        if lacking := self._pods.keys() - found.pods.keys():
            raise StackError(f"{self.name}: {', '.join(sorted(lacking))} lacks a pod")
        for name, text in {**found.files, path.name: json.dumps(found.sections, indent=2)}.items():
            (self._folder / name).write_text(text, encoding="utf-8")
        super().__init__(path)
        there = self._there()
        workers = {url.removeprefix("http://"): name for name, url in self._endpoints.connect.items()}
        for node in self._endpoints.connect:
            # Strimzi's workers name themselves by their pods' DNS names.
            subdomain = there.get(pod := found.pods[node], {}).get("spec", {}).get("subdomain")
            workers[f"{pod}.{subdomain}.{self._api.namespace}.svc:8083"] = node
        changes = KafkaConnectors(self._api, found.declares) if found.declares else None
        self._endpoints = replace(self._endpoints, worker_ids=workers, stack_file=None, connector_changes=changes)
        self._lines = dict.fromkeys(checks(self._endpoints, loadgens=True), self.name)
        self._pods = found.pods
        self._lives = {name: lives_of(each) for name, each in there.items()}

    def _there(self) -> dict[str, Object]:
        return {name_of(each): each for each in self._api.list(PODS)}

    def show(self) -> Path:
        """Returns the stack file of what was found, next to the files of its secrets, until this process ends."""
        return self._file.path

    def services(self) -> list[ServiceState]:
        """A service whose pod has changed is dead once: whoever asks again gets the answer of the new one."""
        if not (changes := self._changes(self._there())):
            return super().services()
        with contextlib.suppress(StackError):
            self._discover()
        return [ServiceState(node, "dead", None, said) for node, said in changes.items()]

    def _changes(self, there: Mapping[str, Object]) -> dict[str, str]:
        found = {node: change(pod, self._lives.get(pod), there.get(pod)) for node, pod in self._pods.items()}
        return {node: said for node, said in found.items() if said}

    def usage(self) -> Usage:
        there = self._there()
        used, changes = self._used(there)[0], self._changes(there)
        jvms = self._jvms.seconds([each for name, each in there.items() if name in self._lives])
        parts = {node: jvms[pod] for node, pod in self._pods.items() if pod in jvms}
        # Without one of its nodes a service's time would fall.
        lacking = {service_of(node) for node in self._pods.keys() - parts.keys()}
        cpu_seconds, memory_bytes = (
            {node: used[pod][what] for node, pod in self._pods.items() if what in used.get(pod, {})}
            for what in ("seconds", "resident")
        )
        return Usage(
            cpu_seconds={**cpu_seconds, **dict.fromkeys(changes)},
            jvm_cpu_seconds={node: found for node, found in parts.items() if service_of(node) not in lacking},
            memory_bytes=memory_bytes,
            troubles=changes,
        )

    def _used(self, there: Mapping[str, Object]) -> tuple[dict[str, dict[str, float]], list[str]]:
        """By pod, as in `used_by_pods`, of the kubelets that answer, and what others say, such as a missing right."""
        kubelets = {name: there[name]["spec"].get("nodeName") for name in self._pods.values() if name in there}
        answers = at_once({each: partial(self._summary, each) for each in set(kubelets.values()) - {None}})
        found: dict[str, dict[str, float]] = {}
        for each in answers.values():
            found |= {} if isinstance(each, str) else used_by_pods(each, self._api.namespace)
        return found, sorted({each for each in answers.values() if isinstance(each, str)})

    def _summary(self, kubelet: str) -> Any:
        path, query = f"/api/v1/nodes/{kubelet}/proxy/stats/summary", [("only_cpu_and_memory", "true")]
        try:
            return self._api.call(path, query_params=query, seconds=KUBELET_SECONDS)
        except StackError as error:
            return str(error)

    def facts(self) -> Facts:
        there = self._there()
        refused = self._used(there)[1]
        unmeasured = (*self._unmeasured(), *refused) if refused else ("free disk space of the services",)
        # The pods of a service have the same.
        allowances = {service_of(node): allowance(there[pod]) for node, pod in self._pods.items() if pod in there}
        return Facts(unmeasured=unmeasured, allowances=allowances)

    def down(self) -> None:
        raise StackError(
            f"{self.name}: `sinkbench kubernetes delete` removes what `sinkbench kubernetes apply` created"
        )

    def log_command(self, service: str, lines: int, follow: bool) -> list[str]:
        more = ["--follow"] if follow else []
        return ["kubectl", "logs", "--namespace", self._api.namespace, "--tail", str(lines), *more, self._pod(service)]

    def log_tail(self, service: str, lines: int) -> str:
        path = self._api.path(f"pods/{self._pod(service)}/log")
        return str(self._api.call(path, query_params=[("tailLines", lines)]))

    def _pod(self, service: str) -> str:
        """The pod of a node, or of a service the primary's, else the first."""
        found = [pod for node, pod in self._pods.items() if service in (node, service_of(node))]
        if not found:
            raise StackError(f"{service}: has no pod in {self.name}; there are {', '.join(self._pods)}")
        primaries = {name_of(each) for each in labelled(self._there().values(), PRIMARY)}
        return max(found, key=primaries.__contains__)

    @property
    def faults(self) -> Faults:  # type: ignore[override]
        return Faults(self._act, self._wait_for, restarts=True)

    def _act(self, what: str, service: str) -> None:
        """Signals the container's processes if the pod shares their namespace, else deletes the pod: Kubernetes starts
        either again by itself. Raises StackError for what needs more than that."""
        if what == "start":
            return
        name = self._pod(service)
        # What a fault does to it is no trouble.
        self._lives.pop(name, None)
        pod = self._api.call(self._api.path(f"pods/{name}"))
        if pod["spec"].get("shareProcessNamespace"):
            # The shell may end with the container.
            with contextlib.suppress(websocket.WebSocketException):
                self._api.shell(pod, f"kill -s {SIGNALS[what]} -- -1", stderr=True).run_forever(SIGNAL_SECONDS)
        elif what in ("kill", "stop"):
            grace = [("gracePeriodSeconds", 0)] if what == "kill" else []
            self._api.call(self._api.path(f"pods/{name}"), "DELETE", query_params=grace)
        else:
            raise StackError(f"{service}: pod {name} does not share its process namespace, so nothing can {what} it")
        if what in ("kill", "stop"):
            # Until then it may still answer.
            before, runs = lives_of(pod), f"pod {name} still runs"
            self._await(service, lambda: None if change(name, before, self._there().get(name)) else runs)

    def _wait_for(self, service: str) -> None:
        """Waits until the service answers, in the same pod or in the one that replaces it."""

        def problem() -> str | None:
            try:
                self._discover()
            except StackError as error:
                # The other pods answer meanwhile.
                return str(error)
            return checks(self._endpoints, loadgens=True)[service]()

        self._await(service, problem)

    def _await(self, service: str, problem: Check) -> None:
        await_ready([service], lambda: {service: problem}, dict, partial(self.log_tail, lines=LOG_LINES), READY_SECONDS)


def used_by_pods(summary: Mapping[str, Any], namespace: str) -> dict[str, dict[str, float]]:
    """CPU `seconds` since their start and `resident` bytes of a namespace's pods, from a kubelet's `stats/summary`.

    It adds up the containers, whose readings are newer than those of the pod; what one of them lacks is left out."""
    of_pods = {each["podRef"]["name"]: each for each in summary["pods"] if each["podRef"]["namespace"] == namespace}
    return {name: together([_used(each) for each in pod.get("containers", [])]) for name, pod in of_pods.items()}


def _used(container: Mapping[str, Any]) -> dict[str, float]:
    used, resident = container.get("cpu", {}).get("usageCoreNanoSeconds"), container.get("memory", {}).get("rssBytes")
    found = {"seconds": used and used / 1e9, "resident": resident and float(resident)}
    return {what: each for what, each in found.items() if each is not None}


def together(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The sum of each figure that all of these have."""
    names = set.intersection(*map(set, parts)) if parts else ()
    return {name: sum(each[name] for each in parts) for name in names}


def lives_of(pod: Object) -> tuple[str, int]:
    """A pod's uid, and how often its containers were started again."""
    restarts = sum(each["restartCount"] for each in pod.get("status", {}).get("containerStatuses", []))
    return pod["metadata"]["uid"], restarts


def change(name: str, before: tuple[str, int] | None, now: Object | None) -> str:
    """Why a pod is no longer the one that it was `before`; "" if it is, or if that is not known."""
    if before is None or (now is not None and lives_of(now) == before):
        return ""
    # Who replaces a pod may give the new one its name.
    if now is None or lives_of(now)[0] != before[0]:
        return f"lost its pod {name}: it was deleted or evicted"
    ends = [each.get("lastState", {}).get("terminated", {}) for each in now["status"].get("containerStatuses", [])]
    why = next((f" ({each['reason']}, exit code {each['exitCode']})" for each in ends if each), "")
    return f"was started again in pod {name}{why}"


def allowance(pod: Object) -> Allowance:
    """The limits of a pod's containers together; None for what one of them has no limit of."""
    limits = [each.get("resources", {}).get("limits", {}) for each in pod["spec"]["containers"]]
    found = together([{what: float(parse_quantity(most)) for what, most in each.items()} for each in limits])
    return Allowance(found.get("cpu"), int(found["memory"]) if "memory" in found else None)
