"""One load generator's part of a load, by loadgen's HTTP interface."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import httpx
from pydantic import ValidationError

from loadgen.state import LoadName, LoadState
from loadgen.summary import Summary
from sinkbench.errors import ServiceError, ServiceTimeout, TrialFailed
from sinkbench.load.records import KeptRecords
from sinkbench.secrets import redacted
from sinkbench.services.http import http_errors

__all__ = ["ANSWER_SECONDS", "Part"]

ANSWER_SECONDS = 5.0
# A load generator answers a DELETE once the load has ended, up to 7 s later.
CANCEL_SECONDS = 9.0
REACH_SECONDS = 2.0
# For a whole data set.
SEND_SECONDS = 120.0


class Part:
    """The range of `seq` values that one load generator produces."""

    def __init__(self, client: httpx.Client, name: str, url: str, load: LoadName) -> None:
        """`name` and `url` are the load generator's, `load` the part; several parts may share `client`."""
        self._client = client
        self._name = name
        self._url = url.rstrip("/")
        self._load = load
        self._begun = False
        self.acknowledged = 0
        """Records of the part acknowledged at the last `look`."""
        self.summary: Summary | None = None
        """The part's summary, once it is done."""

    def give(self, records: KeptRecords | None) -> None:
        """Sends the records of the user's own, if these are loaded and the load generator does not have them yet.

        Raises TrialFailed if it does not take them.
        """
        if records is None:
            return
        try:
            with http_errors():
                there = self._client.get(f"{self._url}/records")
                self._check_let_in(there)
                if there.is_success and (there.json() or {}).get("sha256") == records.facts.sha256:
                    return
                with records.path.open("rb") as file:
                    answer = self._client.put(f"{self._url}/records", content=file, timeout=SEND_SECONDS)
        except (ServiceError, ValueError) as error:
            raise TrialFailed(f"{self._name} at {self._url} does not take the records ({error}); look at it") from None
        if answer.status_code != 201:
            raise TrialFailed(f"{self._name} does not take the records: {_error(answer)}")

    def share_of(self, rate: float | None, records: int) -> dict[str, float]:
        """The option for the part's share of the `rate` of a load of `records`; empty without a rate."""
        return {} if rate is None else {"rate": rate * (self._load.count or 0) / records}

    def begin(self, options: Mapping[str, Any]) -> None:
        """Begins the part; `options` are the fields of `loadgen.options.Load` that all parts share.

        Raises TrialFailed if the load generator does not answer, is busy, or refuses the options.
        """
        body = {**options, **self._load.model_dump()}
        # Set first: without an answer, the load may have begun all the same.
        self._begun = True
        try:
            with http_errors():
                answer = self._client.post(f"{self._url}/load", json=body)
        except ServiceError as error:
            raise TrialFailed(
                f"{self._name} at {self._url} cannot be reached ({error}); start it, or correct its address or its CA"
            ) from None
        if answer.status_code == 201:
            return
        self._begun = False
        self._check_let_in(answer)
        what = {409: "is busy", 400: "refuses the load"}.get(answer.status_code)
        raise TrialFailed(f"{self._name} {what}: {_error(answer)}" if what else self._strange("POST", answer))

    def look(self) -> Summary | None:
        """Asks for the part's progress; returns its summary, or None while it goes on.

        Raises TrialFailed if the load generator died or does not answer, or not every record was acknowledged.
        """
        try:
            answer = self._asked()
        except ServiceTimeout:
            raise TrialFailed(f"{self._name} did not answer for {ANSWER_SECONDS:g} s, {self._at()}") from None
        except ServiceError:
            raise TrialFailed(f"{self._name} died {self._at()}") from None
        state = self._state_in(answer)
        if state.load != self._load:
            now = "nothing" if state.load is None else f"run {state.load.run}"
            raise TrialFailed(f"{self._name} died {self._at()}, and was started anew: it now loads {now}")
        self.acknowledged = state.acknowledged
        self._check(state)
        self.summary = state.summary
        return state.summary

    def _asked(self) -> httpx.Response:
        url = f"{self._url}/load"
        with http_errors():
            try:
                return self._client.get(url)
            except (httpx.NetworkError, httpx.RemoteProtocolError):
                # It may have closed a connection that was kept open just when it was used again.
                return self._client.get(url)

    def cancel(self) -> None:
        """Stops the part if it was begun; a load generator that has died is fine."""
        if not self._begun:
            return
        # Without an answer nothing more can be done from here; the caller reports what ended the load.
        with suppress(ServiceError), http_errors():
            self._client.delete(
                f"{self._url}/load",
                params={"run": self._load.run},
                timeout=httpx.Timeout(CANCEL_SECONDS, connect=REACH_SECONDS),
            )

    def _check_let_in(self, answer: httpx.Response) -> None:
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            raise TrialFailed(
                f"{self._name} at {self._url} does not let us in ({_error(answer)}); correct user and password"
            )

    def _state_in(self, answer: httpx.Response) -> LoadState:
        self._check_let_in(answer)
        with suppress(ValidationError):
            if answer.status_code == 200:
                return LoadState.model_validate_json(answer.content)
        raise TrialFailed(self._strange("GET", answer))

    def _check(self, state: LoadState) -> None:
        if state.state == "running":
            return
        if state.state == "cancelled":
            raise TrialFailed(f"{self._name} was stopped by somebody else {self._at()}")
        if state.summary is None:
            raise TrialFailed(f"{self._name} {self._at()}: {state.error or 'it gives no summary'}")
        if state.summary.acknowledged != self._load.count:
            reasons = [f"{error}: {count:,}" for error, count in state.summary.errors.items()]
            raise TrialFailed(
                f"{self._name} ended {self._at()}: {'; '.join([*reasons, *filter(None, [state.summary.stopped])])}"
            )

    def _at(self) -> str:
        return f"at {self.acknowledged:,} of {self._load.count or 0:,} records"

    def _strange(self, method: str, answer: httpx.Response) -> str:
        return (
            f"{self._name} at {self._url} answers {method} /load with {answer.status_code} ({_error(answer)}), as no "
            "loadgen of this version does; look at what runs there"
        )


def _error(answer: httpx.Response) -> str:
    """A load generator's error; of any other server, the beginning of its answer."""
    try:
        return str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        # Before it is cut: half a secret would not be found any more.
        return " ".join(redacted(answer.text)[:100].split()) or "no text"
