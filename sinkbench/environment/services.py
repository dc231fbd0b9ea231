"""What the services report: versions, and JVMs without flags that have free text."""

import platform
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import TypeVar

import confluent_kafka
import httpx
from pydantic import JsonValue

from sinkbench.errors import ServiceError, StackError
from sinkbench.services.access import Access
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.failures import in_one_line
from sinkbench.services.http import http_client
from sinkbench.services.versions import kafka_release
from sinkbench.sinks import sink_kinds
from sinkbench.stack import Endpoints
from sinkbench.stack.registry import About, sink_service

MAVEN = "{http://maven.apache.org/POM/4.0.0}"
TIMEOUT_SECONDS = 10.0
# When a broker flushes to disk, and how many replicas acknowledge a record.
BROKER = ("min.insync.replicas", "log.flush.interval.messages", "log.flush.interval.ms")

_SIZE = re.compile(r"-(X(?:ms|mx|mn|ss))(\d+[kmgtKMGT]?)")
_SWITCH = re.compile(r"-XX:([+-])(\w+)")
_NUMBER = re.compile(r"-XX:(\w+)=(\d+(?:\.\d+)?[kmgtKMGT]?)")
_MODE = re.compile(r"-(Xint|Xcomp|Xmixed|Xbatch)")
# Newer and older versions of the Prometheus JMX exporter differ in this name.
_VERSION = re.compile(r'^(?:jvm_runtime_info|jvm_info)\{(?:[^}]*,)?version="([^"]+)"', re.MULTILINE)

Told = TypeVar("Told")


def versions(endpoints: Endpoints, checkout: Path, sinks: Mapping[str, About]) -> dict[str, JsonValue]:
    """Returns the versions of sinkbench, its clients and every service; None for external services that do not report
    it. Raises StackError if a service that sinkbench started does not."""
    release = partial(kafka_release, endpoints.kafka, endpoints.kafka_settings, TIMEOUT_SECONDS)
    found: dict[str, JsonValue] = {"sinkbench": version("sinkbench"), "python": platform.python_version()}
    clients = ["confluent-kafka", *(client for kind in sink_kinds() for client in kind.clients)]
    found |= dict.fromkeys(clients)
    for client in clients:
        with suppress(PackageNotFoundError):
            found[client] = version(client)
    found["librdkafka"] = confluent_kafka.libversion()[0]
    found.update({} if endpoints.shared else _shipped(checkout))
    with ConnectCluster(endpoints.connect.values(), endpoints.connect_access) as connect:
        found["connect"] = _told("connect", connect.version, endpoints)
    # Brokers do not report it: external ones show a range of releases; sinkbench's own have the workers' jars.
    found["kafka"] = _told("kafka", release, endpoints) if endpoints.shared else found["connect"]
    for name, about in sinks.items():
        # Elasticsearch's client has the same name.
        found[f"{name}-server" if name in clients else name] = about.version
    return found


def jvms(endpoints: Endpoints, lines: Mapping[str, Sequence[str]], sinks: Mapping[str, About]) -> dict[str, JsonValue]:
    """Returns version and flags of each JVM; None if not visible. `lines` has the visible command lines."""
    workers = {name: words for name, words in lines.items() if name.startswith("connect-") and java_of(words)}
    connect = common(version_shown(text) for text in _metrics(endpoints))
    broker = lines.get("kafka", ())
    # A broker does not report its Java version. If it runs the workers' Java, the version is theirs.
    same = java_of(broker) is not None and {java_of(broker)} == {java_of(words) for words in workers.values()}
    found: dict[str, JsonValue] = {
        "kafka": {"version": connect if same else None, "flags": flags_of(broker) if java_of(broker) else None},
        "connect": {"version": connect, "flags": common(flags_of(words) for words in workers.values())},
    }
    for name, about in sinks.items():
        if sink_service(name).in_java:
            words = about.java_arguments
            found[name] = {"version": about.java, "flags": None if words is None else flags_of(words)}
    return found


def about_sinks(endpoints: Endpoints) -> dict[str, About]:
    """Returns what each sink service reports. Raises StackError if one that sinkbench started does not answer."""
    asked = {name: (sink_service(name), endpoint) for name, endpoint in endpoints.sinks.items()}
    return {
        name: _told(service.title, partial(service.about, endpoint), endpoints) or About()
        for name, (service, endpoint) in asked.items()
    }


def _told(name: str, ask: Callable[[], Told], endpoints: Endpoints) -> Told | None:
    """A service's answer; None if an external one does not answer. Raises StackError if one of sinkbench's does not."""
    try:
        return ask()
    except (ServiceError, ValueError) as error:
        if endpoints.shared:
            return None
        raise StackError(f"{name} did not tell its version: {in_one_line(error)}") from None


def _shipped(checkout: Path) -> dict[str, JsonValue]:
    project = ET.parse(checkout / "connect" / "pom.xml").getroot()  # noqa: S314 - ours
    properties = {each.tag.removeprefix(MAVEN): each.text for each in project.findall(f"{MAVEN}properties/*")}
    return {name.removesuffix(".version"): text for name, text in properties.items() if name.endswith(".version")}


def _metrics(endpoints: Endpoints) -> list[str]:
    shown = []
    # The exporter is not Connect's REST interface: it must not get Connect's user and password.
    with http_client(Access(ca=endpoints.connect_access.ca), TIMEOUT_SECONDS) as http:
        for url in endpoints.connect_metrics.values():
            with suppress(httpx.HTTPError):
                answer = http.get(url)
                if answer.status_code == httpx.codes.OK:
                    shown.append(answer.text)
    return shown


def flags_of(words: Iterable[str]) -> dict[str, JsonValue]:
    """Returns a Java command line's flags: sizes and numbers as text, switches as booleans. The last one wins."""
    found: dict[str, JsonValue] = {}
    for word in words:
        if size := _SIZE.fullmatch(word) or _NUMBER.fullmatch(word):
            found[size[1]] = size[2]
        elif switch := _SWITCH.fullmatch(word):
            found[switch[2]] = switch[1] == "+"
        elif mode := _MODE.fullmatch(word):
            found[mode[1]] = True
    return found


def java_of(words: Sequence[str]) -> str | None:
    """Returns the program of a Java command line; None if it is not Java."""
    return words[0] if words and PurePosixPath(words[0]).name == "java" else None


def version_shown(metrics: str) -> str | None:
    """Returns the Java version in a worker's metrics (Prometheus text); None if they contain none."""
    found = _VERSION.search(metrics)
    return None if found is None else found[1]


def common(values: Iterable[JsonValue]) -> JsonValue:
    """Returns the value that all processes share, "different" if they differ. Unknown ones (None) are ignored."""
    if not (known := [value for value in values if value is not None]):
        return None
    return known[0] if all(value == known[0] for value in known) else "different"
