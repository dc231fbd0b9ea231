"""One load generator's part of a load: by loadgen's HTTP interface, or by a child process where there is no service."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import httpx

from loadgen.dataset.store import Dataset
from loadgen.errors import UnusableError
from loadgen.options import Load, load_from
from loadgen.service import CANCEL_SECONDS, LoadService
from loadgen.summary import ClockOffset, LoadName, LoadState, Summary
from sinkbench.errors import ServiceError, ServiceTimeout, TrialFailed
from sinkbench.load.records import KeptRecords
from sinkbench.secrets import redacted
from sinkbench.services.clocks import clock_offset
from sinkbench.services.http import http_errors
from sinkbench.services.worker import WorkerFailed, Workers, answer_of, order

ANSWER_SECONDS = 5.0
START_SECONDS = 60.0
# The answer comes once the load has ended.
END_SECONDS = CANCEL_SECONDS + 2
REACH_SECONDS = 2.0
# For a whole data set.
SEND_SECONDS = 120.0
REPORT_SECONDS = 0.1

Found = TypeVar("Found")


class Part(ABC):
    """The range of `seq` values that one load generator produces."""

    def __init__(self, name: str, load: LoadName) -> None:
        self._name = name
        self._load = load
        self.count = load.count or 0
        self.acknowledged = 0
        """Records of the part acknowledged at the last `look`."""
        self.summary: Summary | None = None
        self._clock: ClockOffset | None = None

    @abstractmethod
    def give(self, records: KeptRecords | None) -> None:
        """Hands over your own records, if the load uses them. Raises TrialFailed if they are refused."""

    @abstractmethod
    def begin(self, options: Mapping[str, Any]) -> None:
        """Begins the part; `options` are the fields of `loadgen.options.Load` that all parts share. Raises TrialFailed
        if the load generator does not answer, is busy, or refuses the options."""

    @abstractmethod
    def cancel(self) -> None:
        """Stops the part if it was begun; a dead load generator is no error."""

    @abstractmethod
    def _state(self) -> LoadState:
        """The load generator's newest load. Raises ServiceError if it has died."""

    def look(self) -> Summary | None:
        """Reads the part's progress; returns its summary, or None while it continues. Raises TrialFailed if the load
        generator died or does not answer, or a record was not acknowledged."""
        at = f"at {self.acknowledged:,} of {self.count:,} records"
        try:
            state = self._state()
        except ServiceTimeout:
            raise TrialFailed(f"{self._name} did not answer for {ANSWER_SECONDS:g} s, {at}") from None
        except ServiceError:
            raise TrialFailed(f"{self._name} died {at}") from None
        if state.load != self._load:
            now = "nothing" if state.load is None else f"run {state.load.run}"
            raise TrialFailed(f"{self._name} died {at}, and was started anew: it now loads {now}")
        self.acknowledged = state.acknowledged
        if state.state == "running":
            return None
        at = f"at {self.acknowledged:,} of {self.count:,} records"
        if state.state == "cancelled":
            raise TrialFailed(f"{self._name} was stopped by another client {at}")
        if state.summary is None:
            raise TrialFailed(f"{self._name} {at}: {state.error or 'it gives no summary'}")
        if state.summary.acknowledged != self.count:
            reasons = [f"{error}: {count:,}" for error, count in state.summary.errors.items()]
            raise TrialFailed(f"{self._name} ended {at}: {'; '.join(filter(None, [*reasons, state.summary.stopped]))}")
        self.summary = state.summary.model_copy(update={"clock": self._clock})
        return self.summary


class RemotePart(Part):
    """A part that a service produces, by loadgen's HTTP interface."""

    def __init__(self, client: httpx.Client, name: str, url: str, load: LoadName) -> None:
        super().__init__(name, load)
        self._client = client
        self._url = url.rstrip("/")
        self._begun = False

    def give(self, records: KeptRecords | None) -> None:
        """Sends the records unless the service has them."""
        if records is None:
            return
        try:
            with http_errors():
                there = self._client.get(f"{self._url}/records")
                if there.is_success and (there.json() or {}).get("sha256") == records.facts.sha256:
                    return
                with records.path.open("rb") as file:
                    answer = self._client.put(f"{self._url}/records", content=file, timeout=SEND_SECONDS)
        except (ServiceError, ValueError) as error:
            raise TrialFailed(f"{self._name} at {self._url} does not take the records ({error})") from None
        if answer.status_code != httpx.codes.CREATED:
            raise TrialFailed(f"{self._name} does not take the records: {_error(answer)}")

    def begin(self, options: Mapping[str, Any]) -> None:
        try:
            if options.get("rate") is not None:
                ahead_us, within_us = clock_offset(self._clock_us)
                self._clock = ClockOffset(loadgen=self._name, ahead_ms=ahead_us / 1000, within_ms=within_us / 1000)
                options = {**options, "clock_ahead_us": ahead_us}
            # Set first: without an answer, the load may still have begun.
            self._begun = True
            with http_errors():
                answer = self._client.post(f"{self._url}/load", json={**options, **self._load.model_dump()})
        except ServiceError as error:
            raise TrialFailed(
                f"{self._name} at {self._url} cannot be reached ({error}); start it, or correct its address or its CA"
            ) from None
        if answer.status_code != httpx.codes.CREATED:
            self._begun = False
            raise self._refused("POST /load", answer)

    def cancel(self) -> None:
        if not self._begun:
            return
        timeout = httpx.Timeout(END_SECONDS, connect=REACH_SECONDS)
        # Without an answer nothing more can be done here; the caller reports what ended the load.
        with suppress(ServiceError), http_errors():
            self._client.delete(f"{self._url}/load", params={"run": self._load.run}, timeout=timeout)

    def _state(self) -> LoadState:
        return self._get("/load", lambda answer: LoadState.model_validate_json(answer.content))

    def _clock_us(self) -> float:
        return self._get("/clock", lambda answer: float(answer.json()["us"]))

    def _get(self, path: str, read: Callable[[httpx.Response], Found]) -> Found:
        with http_errors():
            try:
                answer = self._client.get(f"{self._url}{path}")
            except (httpx.NetworkError, httpx.RemoteProtocolError):
                # The server may close a kept-alive connection just when it is used again.
                answer = self._client.get(f"{self._url}{path}")
        with suppress(ValueError, KeyError, TypeError):
            if answer.status_code == httpx.codes.OK:
                return read(answer)
        raise self._refused(f"GET {path}", answer)

    def _refused(self, request: str, answer: httpx.Response) -> TrialFailed:
        code, error = answer.status_code, _error(answer)
        strange = f"answers {request} with {code} ({error}), as no loadgen of this version does"
        said = {
            401: f"at {self._url} refuses user and password ({error}); correct these",
            400: f"refuses the load: {error}",
            409: f"is busy: {error}",
        }
        return TrialFailed(f"{self._name} {said.get(code, f'at {self._url} {strange}')}")


def _error(answer: httpx.Response) -> str:
    """A load generator's error; of any other server, the beginning of its answer."""
    try:
        return str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        # Redact before cutting: half a secret would not be recognized.
        return " ".join(redacted(answer.text)[:100].split()) or "no text"


class LocalPart(Part):
    """A part that a child process produces."""

    def __init__(self, workers: Workers, settings: Mapping[str, str], load: LoadName) -> None:
        super().__init__("loadgen", load)
        self._workers = workers
        self._settings = settings
        self._records: Path | None = None
        self._worker: Connection | None = None
        self._newest = LoadState(state="running", load=load)

    def give(self, records: KeptRecords | None) -> None:
        """The child process reads the file itself."""
        self._records = None if records is None else records.path

    def begin(self, options: Mapping[str, Any]) -> None:
        try:
            load = load_from({**options, **self._load.model_dump()})
            self._worker = self._workers.start(produce)
            order(self._worker, (load, dict(self._settings), self._records))
            self._newest = answer_of(self._worker, START_SECONDS)
        except (UnusableError, WorkerFailed) as error:
            raise TrialFailed(f"{self._name} does not begin the load: {error}") from None

    def cancel(self) -> None:
        if self._worker is None:
            return
        # A worker that died or is done has nothing to stop.
        with suppress(WorkerFailed):
            order(self._worker, "stop")
            while answer_of(self._worker, END_SECONDS).state == "running":
                pass

    def _state(self) -> LoadState:
        try:
            while self._worker is not None and self._newest.state == "running" and self._worker.poll():
                self._newest = answer_of(self._worker, 0.0)
        except WorkerFailed as error:
            raise ServiceError(str(error)) from None
        return self._newest


def produce(connection: Connection) -> None:
    """Child process that produces one load, and reports its state until it has ended or is stopped."""
    what: tuple[Load, Mapping[str, str], Path | None] = connection.recv()
    load, settings, records = what
    service = LoadService(settings)
    if records is not None:
        service.dataset = Dataset.read(records)
    state = service.start(load)
    while state.state == "running":
        connection.send(state)
        if connection.poll(REPORT_SECONDS):
            with suppress(EOFError):
                connection.recv()
            service.cancel(CANCEL_SECONDS)
        state = service.state
    connection.send(state)
