"""What Kafka's brokers receive and send, by their own metrics, which their JVMs tell on a port that is opened."""

import re
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

from sinkbench.errors import ServiceError
from sinkbench.limits.programs import PerfTest, last_line, printed
from sinkbench.stack.tools import find_java
from sinkbench.trial.names import cleaning

_BYTES = ("BytesInPerSec", "BytesOutPerSec", "ReplicationBytesInPerSec", "ReplicationBytesOutPerSec")


def _read(programs: PerfTest, ports: Iterable[int]) -> Counter[str]:
    names = [f"kafka.server:type=BrokerTopicMetrics,name={name}" for name in _BYTES]
    asked = [word for name in names for word in ("--object-name", name)]
    found: Counter[str] = Counter()
    for port in ports:
        url = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{port}/jmxrmi"
        read = ("--jmx-url", url, *asked, "--attributes", "Count", "--one-time", "--report-format", "properties")
        said = printed(programs.start("JmxTool", *read))
        found.update({name: int(value) for name, value in re.findall(r"name=(\w+):Count=(\d+)", said)})
    return found


def traffic_ratios(before: Counter[str], after: Counter[str]) -> dict[str, float]:
    """What brokers sent (`sent_ratio`) and stored (`stored_ratio`) for each byte that was produced; empty if none was.

    Expected: groups + replicas - 1; replicas (AWS, "Best practices for right-sizing your Apache Kafka clusters")."""
    of = {name: after[name] - before[name] for name in _BYTES}
    produced, sent, copied, copies = (of[name] for name in _BYTES)
    if produced <= 0:
        return {}
    return {
        "sent_ratio": round((sent + copies) / produced, 3),
        "stored_ratio": round((produced + copied) / produced, 3),
    }


@contextmanager
def told_by(programs: PerfTest, pids: Iterable[int]) -> Iterator[Callable[[], Counter[str]]]:
    """What reads the metrics of the brokers with these process ids, whose ports are open until the context ends: bytes
    since the start, by metric. Raises ServiceError if a broker does not tell them."""
    ports = []
    with ExitStack() as opened:
        for pid in pids:
            with socket.create_server(("127.0.0.1", 0)) as free:
                ports.append(free.getsockname()[1])
            # A killed controller has left it open.
            _stop(pid)
            opened.enter_context(cleaning(partial(_stop, pid)))
            asked = {"port": ports[-1], "host": "127.0.0.1", "authenticate": "false", "ssl": "false"}
            _ask(pid, "ManagementAgent.start", *(f"jmxremote.{name}={value}" for name, value in asked.items()))
        yield partial(_read, programs, ports)


def _stop(pid: int) -> None:
    with suppress(ServiceError):
        _ask(pid, "ManagementAgent.stop")


def _ask(pid: int, *words: str) -> None:
    command = [str(find_java() / "bin" / "jcmd"), f"{pid}", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = last_line(done.stderr or done.stdout)
        raise ServiceError(f"a broker's metrics of bytes cannot be read: {said}")
