"""The addresses of a local stack's nodes and supervisord's configuration. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sinkbench.errors import StackError
from sinkbench.settings import HOST, Settings
from sinkbench.stack.assembly import specs
from sinkbench.stack.security import Security
from sinkbench.stack.spec import Place, ServiceSpec
from sinkbench.topology import Node, Topology, needed_bytes

__all__ = ["HOST", "check_memory", "local_place", "supervisor_config"]

# The host in the quorum, as with a single broker: Kafka listens where Java resolves this name.
CONTROLLER_HOST = "localhost"
# The last of several stopping brokers may have no quorum to stop in order; a kill then loses nothing.
QUORUM_STOP_SECONDS = 15


def local_place(
    settings: Settings,
    data: str,
    security: Security | None,
    gone: frozenset[str] = frozenset(),
    primaries: Mapping[str, str] | None = None,
) -> Place:
    def address(node: Node, port: str) -> tuple[str, int]:
        return CONTROLLER_HOST if port == "kafka_controller_port" else HOST, settings.port(port, node.number)

    workers = settings.layout.of("connect")
    return Place(
        layout=settings.layout,
        address=address,
        data=data,
        security=security,
        workers={node.name: address(node, "connect_port") for node in workers},
        metrics={node.name: address(node, "connect_metrics_port") for node in workers},
        gone=gone,
        primaries=primaries or {},
    )


def supervisor_config(head: str, place: Place) -> str:
    """Returns `head` with a program for every node. Workers are one program of several processes, and so one group."""
    programs = [
        _program(spec, node, place)
        for spec in specs().values()
        for node in place.layout.of(spec.name)
        if spec.name != "connect"
    ]
    return "\n".join([head, *programs, _workers(specs()["connect"])])


def _program(spec: ServiceSpec, node: Node, place: Place) -> str:
    own = {
        f"{spec.name.upper()}_DATA": f"%(ENV_SINKBENCH_DATA)s/{node.name}",
        **{name.upper(): str(place.address(node, name)[1]) for name in spec.ports},
        **spec.own(place, node),
    }
    quorum = spec.name == "kafka" and len(place.layout.of("kafka")) > 1
    seconds = QUORUM_STOP_SECONDS if quorum else spec.stop_seconds
    return _section(node.name, spec, own, seconds)


def _workers(spec: ServiceSpec) -> str:
    lines = ["process_name = connect-%(process_num)d", "numprocs = %(ENV_SINKBENCH_WORKERS)s", "numprocs_start = 1"]
    name = "connect-%(process_num)d"
    own = {"CONNECT_WORKER": "%(process_num)d"}
    return "\n".join([_section("connect", spec, own, spec.stop_seconds, log=name).rstrip(), *lines, ""])


def _section(name: str, spec: ServiceSpec, own: Mapping[str, str], stop_seconds: int, log: str = "") -> str:
    environment = ",".join(f'{variable}="{value}"' for variable, value in own.items())
    return f"""[program:{name}]
command = "%(ENV_SINKBENCH_HOME)s/services/{spec.script}"
environment = {environment}
user = %(ENV_SINKBENCH_USER)s
autostart = false
autorestart = false
startsecs = 0
stopsignal = {spec.stop_signal}
stopwaitsecs = {stop_seconds}
stopasgroup = false
killasgroup = true
redirect_stderr = true
stdout_logfile = %(ENV_SINKBENCH_HOME)s/log/{log or name}.log
"""


def check_memory(topology: Topology, available_bytes: int) -> None:
    """Raises StackError if a topology that does not run yet needs more memory than is available."""
    needed = needed_bytes(topology)
    if needed <= available_bytes:
        return
    heaps: Mapping[str, str] = topology.heaps()
    counted = ", ".join(f"{len(topology.of(service))} x {heap} for {service}" for service, heap in heaps.items())
    otherwise = "" if topology.is_single else ", or set SINKBENCH_TOPOLOGY=small"
    raise StackError(
        f"the topology {topology.name} needs {needed / 1e9:.1f} GB of memory (heaps: {counted}; and all that is no"
        f" JVM), and {available_bytes / 1e9:.1f} GB are available; end other programs, lower SINKBENCH_KAFKA_HEAP,"
        f" SINKBENCH_CONNECT_HEAP, SINKBENCH_ELASTICSEARCH_HEAP or SINKBENCH_WORKERS{otherwise}"
    )
