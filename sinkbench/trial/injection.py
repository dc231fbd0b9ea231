"""A fault that is under way: it is begun at its moment in a thread of its own, and undone whatever happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial

from sinkbench.errors import ConnectError, ServiceError, StackError, TrialFailed
from sinkbench.plan.faults import (
    COMMAND,
    CONNECTOR,
    ISOLATE,
    OF_SERVICES,
    POISON,
    PROMOTE,
    REFUSE,
    SINK,
    WORKER,
    WORKERS,
    PlanFault,
)
from sinkbench.services.kafka import group_of
from sinkbench.sinks import FullDisk, needed, sink_kind
from sinkbench.stack import Faults
from sinkbench.trial.background import Background
from sinkbench.trial.command import commanded
from sinkbench.trial.network import Network
from sinkbench.trial.poison import poison
from sinkbench.trial.trial import Trial

__all__ = ["Injection"]

# How often bad records are put into the topic.
PORTION_SECONDS = 0.25
# A server may find that there is room after all, and a client a place.
HOLD_SECONDS = 0.5
# A connector that was restarted is given so long until its tasks run, or have failed, before the next restart.
RESTART_SECONDS = 60.0

Step = Callable[[], AbstractContextManager[object]]


class Injection(Background[None]):
    """What is broken in one trial. It is undone when the context is left, at the latest.

    Attributes:
        target: what was broken, by its names; empty before it began.
        moved_to: host and port of the primary that has taken the place of another; None if none has.
        began, ended: when it began, and when it was undone and all was ready again, on the samples' clock.
    """

    def __init__(
        self, trial: Trial, fault: PlanFault, network: Network | None = None, disk: FullDisk | None = None
    ) -> None:
        """`network` is what a fault of the network breaks, `disk` what is filled."""
        super().__init__("fault")
        self._network = network
        self._disk = disk
        self._trial = trial
        self._fault = fault
        self._seconds = fault.seconds
        self.target = ""
        self.moved_to: tuple[str, int] | None = None
        self.began: float | None = None
        self.ended: float | None = None

    def __exit__(self, *raised: object) -> None:
        """Undoes it. That this fails is told, whatever else ends the trial. Raises TrialFailed or ServiceError then."""
        super().__exit__(*raised)
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
        # An interrupt keeps no record that could tell it.
        self._trial.observer.phase(f"{self._fault.name}: {failed}")

    def begin(self) -> None:
        """Begins it, unless it has begun."""
        if self._future is None:
            steps = self._steps()
            self.began = self._trial.now()
            self._submit(partial(self._run, steps))

    def _run(self, steps: list[Step]) -> None:
        for place, step in enumerate(steps):
            if place and self._stop.is_set():
                break
            with step():
                # What has no end of its own ends with the trial.
                self._stop.wait(self._seconds)
        self.ended = self._trial.now()

    def _steps(self) -> list[Step]:
        """What is done one after the other: each is entered, lasts a while, and is left."""
        fault, trial = self._fault, self._trial
        if fault.what in OF_SERVICES:
            services = self._services()
            self.target = ", ".join(services)
            return [
                partial(_broken, needed(trial.bench.stack.faults, "faults"), fault.what, service)
                for service in services
            ]
        if self._network is not None:
            self.target = self._network.target
            return [partial(self._network.broken, fault)]
        if self._disk is not None:
            self.target = f"disk of {self._sink_service}"
            return [partial(self._filling, self._disk)]
        if fault.what == PROMOTE:
            self.target = f"primary of {self._sink_service}"
            return [self._promoted]
        if fault.what == REFUSE:
            self.target = self._sink_service
            return [self._refusing]
        if fault.what == POISON:
            self.target = fault.hits
            return [self._poisoning]
        if fault.what == COMMAND:
            self.target = fault.name
            return [partial(commanded, fault.command or "", fault.undo or "", trial.names)]
        of_connector: dict[str, list[Step]] = {
            "pause": [self._paused],
            "join": [self._joined],
            "rename": [self._renamed],
            "restart": [self._restarted] * fault.times,
        }
        steps = of_connector.get(fault.what, [])
        self.target = CONNECTOR if steps else ""
        return steps

    @property
    def _sink_service(self) -> str:
        return sink_kind(self._trial.cell.sink).services[0].name

    def _services(self) -> list[str]:
        """The services or workers that are hit."""
        target, trial = self._fault.hits, self._trial
        if target == SINK:
            return [self._sink_service]
        if target not in (WORKER, WORKERS):
            return [target]
        workers = list(trial.bench.stack.endpoints.connect)
        if target == WORKERS:
            return workers
        # One without a task would show nothing.
        placed = {} if trial.placed is None else trial.bench.placement(trial.placed)
        return [next((name for name in reversed(workers) if placed.get(name)), workers[-1])]

    @contextmanager
    def _promoted(self) -> Iterator[None]:
        promotion = needed(
            needed(self._trial.bench.stack.faults, "faults").promotion(self._trial.cell.sink), "promotion"
        )
        self.moved_to = promotion.promote()
        try:
            yield
        finally:
            promotion.demote()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        trial = self._trial
        target, why = trial.names.target, self._fault.reason
        with closing(trial.bench.another_sink(trial.cell.sink)) as sink:
            refusing = needed(sink.capabilities.refusing, "refusing")
            try:
                if why == "no connection":
                    self._hold(partial(refusing.refuse, target, why))
                else:
                    refusing.refuse(target, why)
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
        """Does it again and again for as long as the fault lasts."""
        until = time.monotonic() + self._fault.most_seconds
        again()
        while (left := until - time.monotonic()) > 0 and not self._stop.wait(min(left, HOLD_SECONDS)):
            again()
        # The time is over by now.
        self._seconds = 0.0

    @contextmanager
    def _poisoning(self) -> Iterator[None]:
        """Puts bad records among those of the load, evenly over the fault's time."""
        trial, fault = self._trial, self._fault
        count = max(1, round(fault.bad_share * trial.records))
        portions = max(1, min(count, round(fault.most_seconds / PORTION_SECONDS)))
        for portion in range(portions):
            numbers = range(portion * count // portions, (portion + 1) * count // portions)
            values = (poison(fault.bad_records, number) for number in numbers)
            trial.poisoned += trial.bench.kafka.produce(trial.names.topic, values)
            if self._stop.wait(fault.most_seconds / portions):
                break
        # The time is over by now.
        self._seconds = 0.0
        yield

    @contextmanager
    def _paused(self) -> Iterator[None]:
        connect, name = self._trial.bench.connect, self._trial.names.connector
        connect.pause(name)
        try:
            yield
        finally:
            connect.resume(name)

    @contextmanager
    def _joined(self) -> Iterator[None]:
        bench, second = self._trial.bench, self._trial.names.second
        bench.create_topic(second)
        try:
            bench.start_connector(self._trial.cell, second)
            yield
        finally:
            bench.stop_connector(second)
            bench.kafka.delete_group(group_of(second.connector))
            bench.kafka.delete_topic(second.topic)

    @contextmanager
    def _renamed(self) -> Iterator[None]:
        trial = self._trial
        bench, before = trial.bench, trial.names
        bench.stop_connector(before)
        bench.kafka.delete_group(group_of(before.connector))
        trial.names = before.renamed
        bench.start_connector(trial.cell, trial.names)
        yield

    @contextmanager
    def _restarted(self) -> Iterator[None]:
        trial = self._trial
        trial.bench.connect.restart(trial.names.connector)
        # That its tasks do not start is what the trial shows.
        with suppress(ConnectError):
            trial.bench.connect.wait_for_tasks(trial.names.connector, trial.cell.tasks, RESTART_SECONDS)
        yield


@contextmanager
def _broken(faults: Faults, what: str, service: str) -> Iterator[None]:
    """A service that is killed, stopped, frozen or without its network, and then runs again."""
    if what == ISOLATE:
        network = needed(faults.isolation, "isolation")
        do, undo = network.isolate, network.rejoin
    else:
        do = {"kill": faults.kill, "stop": faults.stop, "freeze": faults.freeze}[what]
        undo = faults.thaw if what == "freeze" else faults.start
    do(service)
    try:
        yield
    finally:
        undo(service)
