"""Runs a fault in a separate thread: begins it at its time and undoes it in every case."""

import json
import os
import random
import signal
import string
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import Any

from sinkbench.errors import ConnectError, ServiceError, StackError, TrialFailed
from sinkbench.plan import faults
from sinkbench.results import Act
from sinkbench.secrets import redacted
from sinkbench.sinks import FullDisk, needed, sink_kind
from sinkbench.trial.names import Names
from sinkbench.trial.resources import Resources
from sinkbench.trial.stop import Deed
from sinkbench.trial.values import Faulted
from sinkbench.trial.workload import Around, proxy_targets_used
from sinkbench.trial.workloads.sustain import Background

# Includes the time to connect to a remote host; a longer action belongs in the fault's own seconds.
COMMAND_SECONDS = 60.0
RUN = "poison"
"""The `bench.run` of bad records, which are not part of the load."""
# Elasticsearch's limit for a term is 32,766 bytes, that of a PostgreSQL B-tree 2,704 after compression.
_TOO_LONG = 40_000
# Interval at which bad records are written.
PORTION_SECONDS = 0.25
# A server may find free space again, and a client a free connection.
HOLD_SECONDS = 0.5
# What undoes each fault of a service.
UNDOING = {"kill": "start", "stop": "start", "freeze": "thaw", "isolate": "rejoin"}
# Time for a restarted connector's tasks to run or fail, before the next restart.
RESTART_SECONDS = 60.0

Step = Callable[[], AbstractContextManager[object]]


@contextmanager
def commanded(command: str, undo: str, names: Names) -> Iterator[None]:
    """Runs `command` in a shell, and `undo` at the end, also if the command failed. Raises StackError."""
    of_trial = {"TOPIC": names.topic, "CONNECTOR": names.connector, "TARGET": names.target}
    found = {f"SINKBENCH_{name}": value for name, value in of_trial.items()}
    try:
        _run("command", command, found)
        yield
    finally:
        _run("undo", undo, found)


def _run(key: str, text: str, variables: Mapping[str, str]) -> None:
    # A background process would keep a pipe open.
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["sh", "-c", text],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **variables},
            # Ctrl-C must reach only the race, which then undoes the fault.
            start_new_session=True,
        )
        try:
            code = process.wait(COMMAND_SECONDS)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise StackError(f"'{key}' {text!r} did not end in {COMMAND_SECONDS:g} s, and was killed") from None
        output.seek(0)
        said = output.read().decode(errors="replace").strip().splitlines()
    if code != 0:
        last = f": {redacted(said[-1].strip())}" if said else ""
        raise StackError(f"'{key}' {text!r} ended with exit code {code}{last}")


def poison(records: faults.Poison, number: int) -> bytes:
    """Returns a bad record by number, like a good one in its members, and in its size unless that is what is bad."""
    station = {"id": "9414290", "name": "San Francisco", "lat": "37.8063", "lon": "-122.4659"}
    level = {"t": "2026-01-31 17:06", "v": "1.234", "s": "0.043", "f": "1,0,0,0", "q": "p"}
    if records == "nul":
        station["name"] = "San\0Francisco"
    elif records == "wrong type":
        station["lat"], level["t"] = "north", "yesterday"
    elif records == "too large":
        station["id"] = "".join(random.Random(number).choices(string.ascii_letters + string.digits, k=_TOO_LONG))
    document = {"metadata": station, "data": [level], "bench": {"run": RUN, "number": number}}
    text = json.dumps(document).encode()
    return text[: len(text) // 2] if records == "not json" else text


class Injection(Background[None]):
    """The fault of one trial and its course, with what a user would do about it. Its thread only puts events, which are
    fields of `Faulted` and which the trial's thread takes; it is undone when the context ends."""

    def __init__(self, own: Resources, fault: faults.PlanFault, around: Around, now: Callable[[], float]) -> None:
        """`around` has the network and the disk that faults use; `now` returns the time on the samples' clock."""
        super().__init__("fault")
        self._own = own
        self._fault = fault
        self._around = around
        self._now = now
        able = own.cluster.stack.faults
        by_itself = able is not None and able.restarts and UNDOING.get(fault.what) == "start"
        self._seconds = 0.0 if by_itself else fault.seconds
        self._events: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.found = Faulted()

    def __exit__(self, *raised: object) -> None:
        """Undoes the fault. Raises TrialFailed or ServiceError if that fails, with the error that ended the trial."""
        try:
            super().__exit__(*raised)
        finally:
            self.take()
        error = raised[1]
        failed = None if self._future is None else self._future.exception()
        if failed is None or failed is error:
            return
        if error is None:
            raise failed
        both = f"{error}; {self._fault.name}: {failed}"
        if isinstance(error, TrialFailed):
            raise TrialFailed(both, error.code) from None
        if isinstance(error, ServiceError | OSError):
            raise StackError(both) from None
        # After an interrupt there is no record for the error.
        self._own.observer.phase(f"{self._fault.name}: {failed}")

    def begin(self, placement: Mapping[str, int]) -> None:
        """Begins the fault. `placement` is the number of tasks per worker."""
        target, steps = self._steps(placement)
        self._events.put({"began": self._now(), "target": target})
        self._submit(partial(self._run, steps))
        self.take()

    def take(self) -> None:
        """Takes in what has happened since; called only in the trial's thread."""
        while not self._events.empty():
            event = self._events.get_nowait()
            self.found = replace(self.found, **event)
            if event.keys() & {"began", "ended"}:
                self._own.observer.fault(self._fault.name, "ended" in event)
            self._own.names = self.found.names or self._own.names

    def act(self, deed: Deed, now: float) -> None:
        """Sends the request that a user would send after waiting."""
        own, connect = self._own, self._own.cluster.connect
        if (to := self._new_address()) is not None:
            # A restart would not change its address.
            deed = Deed.REDIRECT
        act = Act(seconds=round(now - (self.found.began or 0.0), 3), command=deed.format(name=own.names.connector))
        self.found = replace(self.found, acts=(*self.found.acts, act))
        if to is not None:
            replace(own, variables={**own.variables, **to}).start_connector_again()
        elif deed == Deed.RESTART_FAILED:
            connect.restart_failed(own.names.connector)
        else:
            connect.restart(own.names.connector)

    def _new_address(self) -> dict[str, str] | None:
        """New variables for the sink's only address; None if it was redirected or finds the new primary itself."""
        cell, cluster, moved = self._own.cell, self._own.cluster, self.found.moved
        redirect = Deed.REDIRECT.format(name=self._own.names.connector)
        if moved is None or any(act.command == redirect for act in self.found.acts):
            return None
        proxies = needed(cluster.stack.faults, "faults").proxies
        used = {} if proxies is None else proxy_targets_used(cluster.file_of(cell), cell.sink, proxies.targets)
        return used[cell.sink].at(*moved) if cell.sink in used else None

    def _run(self, steps: list[Step]) -> None:
        for place, step in enumerate(steps):
            if place and self._stop.is_set():
                break
            with step():
                # A fault without an end lasts until the trial's end.
                self._stop.wait(self._seconds)
        self._events.put({"ended": self._now()})

    def _steps(self, placement: Mapping[str, int]) -> tuple[str, list[Step]]:
        """Returns the names of what is affected, and the successive steps: each is entered, lasts, and is left."""
        fault, own, around, what = self._fault, self._own, self._around, self._fault.what
        service, connect, name = sink_kind(own.cell.sink).services[0].name, own.cluster.connect, own.names.connector
        if what in faults.OF_SERVICES:
            do, services = needed(own.cluster.stack.faults, "faults").do, self._services(service, placement)
            return ", ".join(services), [
                partial(_until, partial(do, what, each), partial(do, UNDOING[what], each)) for each in services
            ]
        if what == faults.PROMOTE:
            promotion = needed(needed(own.cluster.stack.faults, "faults").promotion(own.cell.sink), "promotion")
            promote: Callable[[], object] = lambda: self._events.put({"moved": promotion.promote()})  # noqa: E731
            return f"primary of {service}", [partial(_until, promote, promotion.demote)]
        if around.network is not None:
            networks = ", ".join(f"network to {name}" for name in around.network.services)
            return networks, [partial(around.network.broken, fault)]
        if around.disk is not None:
            return f"disk of {service}", [partial(self._filling, around.disk)]
        others: dict[str, tuple[str, list[Step]]] = {
            faults.REFUSE: (service, [self._refusing]),
            faults.POISON: (fault.hits, [self._poisoning]),
            faults.COMMAND: (fault.name, [partial(commanded, fault.command or "", fault.undo or "", own.names)]),
            "pause": (faults.CONNECTOR, [partial(_until, partial(connect.pause, name), partial(connect.resume, name))]),
            "join": (faults.CONNECTOR, [self._joined]),
            "rename": (faults.CONNECTOR, [self._renamed]),
            "restart": (faults.CONNECTOR, [self._restarted] * fault.times),
        }
        return others.get(what, ("", []))

    def _services(self, of_sink: str, placement: Mapping[str, int]) -> list[str]:
        target, workers = self._fault.hits, list(self._own.cluster.stack.endpoints.connect)
        # A worker without a task would show nothing.
        busy = next((name for name in reversed(workers) if placement.get(name)), workers[-1])
        return {faults.SINK: [of_sink], faults.WORKERS: workers, faults.WORKER: [busy]}.get(target, [target])

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        target, why = self._own.names.target, self._fault.reason
        with closing(self._own.cluster.another_sink(self._own.cell.sink)) as sink:
            refusing = needed(sink.capabilities.refusing, "refusing")
            try:
                refuse = partial(refusing.refuse, target, why)
                self._hold(refuse) if why == "no connection" else refuse()
                yield
            finally:
                refusing.accept(target)

    @contextmanager
    def _filling(self, disk: FullDisk) -> Iterator[None]:
        try:
            self._hold(disk.fill)
            yield
        finally:
            disk.free()

    def _hold(self, again: Callable[[], None]) -> None:
        until = time.monotonic() + self._fault.most_seconds
        again()
        while (left := until - time.monotonic()) > 0 and not self._stop.wait(min(left, HOLD_SECONDS)):
            again()
        # The time has passed.
        self._seconds = 0.0

    @contextmanager
    def _poisoning(self) -> Iterator[None]:
        """Writes bad records between those of the load, evenly over the fault's time."""
        own, fault = self._own, self._fault
        count = max(1, round(fault.bad_share * own.records))
        portions, written = max(1, min(count, round(fault.most_seconds / PORTION_SECONDS))), 0
        for portion in range(portions):
            numbers = range(portion * count // portions, (portion + 1) * count // portions)
            values = (poison(fault.bad_records, number) for number in numbers)
            written += own.cluster.kafka.produce(own.names.topic, values)
            self._events.put({"poisoned": written})
            if self._stop.wait(fault.most_seconds / portions):
                break
        # The time has passed.
        self._seconds = 0.0
        yield

    @contextmanager
    def _joined(self) -> Iterator[None]:
        second = replace(self._own, names=self._own.names.second)
        second.create_topic()
        try:
            second.start_connector()
            yield
        finally:
            second.remove_connector()
            second.cluster.kafka.delete_topic(second.names.topic)

    @contextmanager
    def _renamed(self) -> Iterator[None]:
        before, renamed = replace(self._own), replace(self._own, names=self._own.names.renamed)
        before.remove_connector()
        # Reported before it exists: an error that ends the trial now removes it by its new name.
        self._events.put({"names": renamed.names})
        renamed.start_connector()
        yield

    @contextmanager
    def _restarted(self) -> Iterator[None]:
        connect, name = self._own.cluster.connect, self._own.names.connector
        connect.restart(name)
        # Tasks that do not start are a result.
        with suppress(ConnectError):
            connect.wait_for_tasks(name, self._own.cell.tasks, RESTART_SECONDS)
        yield


@contextmanager
def _until(do: Callable[[], object], undo: Callable[[], object]) -> Iterator[None]:
    do()
    try:
        yield
    finally:
        undo()
