"""One load at a time, in a thread of its own, that others can ask about and stop."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Mapping
from typing import Protocol

from loadgen.clientconfig import hide
from loadgen.engine import run
from loadgen.errors import LoadgenError, UnusableError
from loadgen.options import Load
from loadgen.progress import Show
from loadgen.state import LoadName, LoadState, State
from loadgen.summary import Progress, Summary

__all__ = ["BusyError", "Engine", "LoadService"]


class Engine(Protocol):
    """What produces a load: `loadgen.run`, or a test's own."""

    def __call__(
        self,
        load: Load,
        on_progress: Show | None,
        stop: threading.Event | None,
        client_settings: Mapping[str, str] | None,
    ) -> Summary: ...


class BusyError(LoadgenError):
    """A load is going on already."""


class LoadService:
    """Runs one load at a time. All methods may be called from any thread."""

    def __init__(self, client_settings: Mapping[str, str] | None = None, engine: Engine = run) -> None:
        """`client_settings`: further settings of the Kafka client. `engine`: what produces the loads."""
        self._client_settings = client_settings or {}
        self._engine = engine
        self._lock = threading.Lock()
        self._state = LoadState(state="idle")
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> LoadState:
        """How the newest load is."""
        with self._lock:
            return self._state

    def start(self, load: Load) -> LoadState:
        """Begins `load` and returns at once.

        Raises:
            BusyError: another one is going on; the message names it and says how far it is.
        """
        with self._lock:
            state = self._state
            if state.state == "running" and state.load is not None:
                of = "" if state.load.count is None else f" of {state.load.count:,}"
                raise BusyError(
                    f"run {state.load.run} is being loaded into topic {state.load.topic}, {state.acknowledged:,}{of} "
                    "records so far; wait for its end, or stop it with DELETE /load"
                )
            self._state = LoadState(state="running", load=LoadName.of(load))
            self._stop = threading.Event()
            # A daemon: a client that hangs must not keep a process that is asked to end.
            self._thread = threading.Thread(target=self._run, args=(load, self._stop), name="load", daemon=True)
            self._thread.start()
            return self._state

    def cancel(self, wait_seconds: float, run: str | None = None) -> LoadState:
        """Stops the load if one is going on, and waits for its end, but not for longer than `wait_seconds`.

        With `run`, a load of another run is left alone.
        """
        with self._lock:
            name = self._state.load
            if run is not None and (name is None or name.run != run):
                return self._state
            thread = self._thread
            self._stop.set()
        if thread is not None:
            thread.join(wait_seconds)
        return self.state

    def _run(self, load: Load, stop: threading.Event) -> None:
        try:
            summary = self._engine(load, self._show, stop, self._client_settings)
        except UnusableError as error:
            self._end(LoadState(state="failed", load=LoadName.of(load), error=_line(str(error))))
        except Exception as error:  # noqa: BLE001  whatever it is, nobody may wait for its end for ever
            # Without the exception's own text in the log, which may hold a setting.
            sys.stderr.write("".join(traceback.format_tb(error.__traceback__)))
            why = hide(f"{type(error).__name__}: {error}", self._client_settings)
            why = f"the load generator failed ({why}); its log says where"
            self._end(LoadState(state="failed", load=LoadName.of(load), error=why))
        else:
            state: State = "cancelled" if summary.interrupted else "done"
            self._end(LoadState(state=state, load=LoadName.of(load), summary=summary))

    def _show(self, progress: Progress) -> None:
        with self._lock:
            self._state = self._state.model_copy(update={"progress": progress})

    def _end(self, state: LoadState) -> None:
        with self._lock:
            self._state = state.model_copy(update={"progress": self._state.progress})


def _line(text: str) -> str:
    return " ".join(text.split())
