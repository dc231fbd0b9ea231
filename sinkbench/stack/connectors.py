"""Connectors as KafkaConnector resources: with them, Strimzi deletes the connectors that REST creates."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sinkbench.errors import ConnectError, StackError
from sinkbench.secrets import quoted
from sinkbench.stack.operators import STRIMZI, NotThere, Object, labelled, name_of, ready

if TYPE_CHECKING:
    from sinkbench.stack.kubernetes import Api

CONNECTORS, RESTART = "kafkaconnectors.kafka.strimzi.io", "strimzi.io/restart"
# What the resource has for keys of a configuration, besides `config`.
FIELDS = {"connector.class": "class", "tasks.max": "tasksMax", "connector.plugin.version": "version"}
STATES = {"pause": "paused", "resume": "running"}
# Strimzi tries again every 120 s.
OPERATOR_SECONDS, POLL_SECONDS = 150.0, 0.3


class KafkaConnectors:
    """Changes connectors of the KafkaConnect `cluster` as requests to Connect's REST interface would."""

    def __init__(self, api: "Api", cluster: str) -> None:
        self._api, self._cluster = api, cluster

    def names(self) -> list[str]:
        return [name_of(each) for each in labelled(self._api.list(CONNECTORS), {STRIMZI: self._cluster})]

    def __call__(self, method: str, path: str, body: Any) -> bool:
        """Returns once the operator has acted; False if there is no such resource. Raises ConnectError, as it says."""
        address, _, options = path.partition("?")
        name, what = [*address.split("/")[2:], "", ""][:2]
        try:
            if body is not None:
                self._apply(name or body["name"], body if name else body["config"])
            elif what == "restart":
                asked = options.replace("=true", "").replace("&", ",")
                self._patch(name, {"metadata": {"annotations": {RESTART: asked}}})
            elif what:
                self._patch(name, {"spec": {"state": STATES[what]}})
            else:
                self._api.call(self._api.path(f"{CONNECTORS}/{name}"), method)
        except NotThere:
            return False
        except StackError as error:
            raise ConnectError(quoted(str(error), 500)) from None
        return True

    def _apply(self, name: str, config: Mapping[str, str]) -> None:
        given: dict[str, Any] = {field: config[key] for key, field in FIELDS.items() if key in config}
        rest = {key: value for key, value in config.items() if key not in FIELDS and key != "name"}
        given |= {"tasksMax": int(config.get("tasks.max", 1)), "state": "running", "config": rest}
        metadata = {"name": name, "labels": {STRIMZI: self._cluster}}
        version = "/".join(self._api.path(CONNECTORS).split("/")[2:4])
        resource = {"apiVersion": version, "kind": "KafkaConnector", "metadata": metadata, "spec": given}
        self._patch(name, resource, "apply-patch+yaml", ("force", "true"))

    def _patch(self, name: str, body: Object, form: str = "merge-patch+json", *more: tuple[str, str]) -> None:
        path, header = self._api.path(f"{CONNECTORS}/{name}"), {"Content-Type": f"application/{form}"}
        query = [("fieldManager", "sinkbench"), ("fieldValidation", "Strict"), *more]
        self._api.call(path, "PATCH", body=body, header_params=header, query_params=query)
        deadline = time.monotonic() + OPERATOR_SECONDS
        while not acted(self._api.call(path)):
            if time.monotonic() > deadline:
                seconds = f"{OPERATOR_SECONDS:.0f} s"
                raise StackError(f"KafkaConnector {name}: no operator has acted upon it in {seconds}; look at its log")
            time.sleep(POLL_SECONDS)


def acted(found: Object) -> bool:
    """Whether the operator has done all that a KafkaConnector asks for now. Raises StackError if it could not."""
    status, metadata = found.get("status", {}), found["metadata"]
    # The operator removes the annotation when it has restarted the connector.
    if status.get("observedGeneration") != metadata["generation"] or RESTART in metadata.get("annotations", {}):
        return False
    # Connect itself says more of a connector that it has, such as why its tasks FAILED.
    if "connectorStatus" in status:
        return True
    # While Connect rebalances it takes no changes: the operator tries again.
    if " 409 (" in str(status.get("conditions")):
        return False
    ready(found)
    return True
