"""Runs one load at a time in a separate thread."""

import sys
import threading
import traceback
from collections.abc import Mapping

from loadgen.client import hide
from loadgen.dataset.store import Dataset
from loadgen.engine import run
from loadgen.errors import LoadgenError, OptionsError, UnusableError
from loadgen.options import NOAA, Load
from loadgen.summary import LoadName, LoadState

CANCEL_SECONDS = 7.0
"""Longer than a load takes to abandon its records in flight."""


class BusyError(LoadgenError):
    """Another load is running."""


class LoadService:
    """Runs one load at a time. All methods are thread-safe."""

    def __init__(self, client_settings: Mapping[str, str]) -> None:
        self._client_settings = client_settings
        self._lock = threading.Lock()
        self._state = LoadState(state="idle")
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.dataset: Dataset | None = None
        """The records of the next loads; a running load keeps its own."""

    @property
    def state(self) -> LoadState:
        with self._lock:
            return self._state

    def start(self, load: Load) -> LoadState:
        """Begins `load`. Raises BusyError if another is running, and OptionsError if its records were not sent."""
        with self._lock:
            dataset = None if load.records == NOAA else self.dataset
            if load.records != NOAA and (dataset is None or dataset.facts.sha256 != load.records):
                raise OptionsError("records: are neither noaa nor those that were sent last; send them by PUT /records")
            if load.key is not None:
                raise OptionsError("key: records that are sent have their keys already; leave it out")
            state = self._state
            if state.state == "running" and state.load is not None:
                raise BusyError(
                    f"run {state.load.run} is being loaded into topic {state.load.topic}, {state.acknowledged:,}"
                    " records so far; wait for its end, or stop it with DELETE /load"
                )
            name = LoadName(**load.model_dump(include=set(LoadName.model_fields)))
            self._state = LoadState(state="running", load=name)
            self._stop = threading.Event()
            # A hanging client must not keep the process alive.
            self._thread = threading.Thread(
                target=self._run, args=(load, self._stop, dataset), name="load", daemon=True
            )
            self._thread.start()
            return self._state

    def cancel(self, wait_seconds: float, run: str | None = None) -> LoadState:
        """Stops a running load, with `run` only that run's, and waits at most `wait_seconds` for its end."""
        with self._lock:
            name = self._state.load
            if run is not None and (name is None or name.run != run):
                return self._state
            thread = self._thread
            self._stop.set()
        if thread is not None:
            thread.join(wait_seconds)
        return self.state

    def _run(self, load: Load, stop: threading.Event, dataset: Dataset | None) -> None:
        try:
            summary = run(load, lambda done: self._update(progress=done), stop, self._client_settings, dataset)
        except UnusableError as error:
            self._update(state="failed", error=" ".join(str(error).split()))
        except Exception as error:  # noqa: BLE001  whatever it is, its end must not be waited for in vain
            # The exception's text may contain a secret setting.
            sys.stderr.write("".join(traceback.format_tb(error.__traceback__)))
            why = hide(f"{type(error).__name__}: {error}", self._client_settings)
            self._update(state="failed", error=f"the load generator failed ({why}); its log says where")
        else:
            self._update(state="cancelled" if summary.interrupted else "done", summary=summary)

    def _update(self, **changes: object) -> None:
        with self._lock:
            self._state = self._state.model_copy(update=changes)
