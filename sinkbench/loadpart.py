"""One load generator's part of a load: begun, followed and stopped by loadgen's HTTP interface."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import httpx
from pydantic import ValidationError

from loadgen.state import LoadName, LoadState
from loadgen.summary import Summary
from sinkbench.errors import TrialFailed

__all__ = ["ANSWER_SECONDS", "Part"]

ANSWER_SECONDS = 5.0
# A load generator answers a DELETE when the load has ended, which takes it up to 7 s.
CANCEL_SECONDS = 9.0
REACH_SECONDS = 2.0


class Part:
    """The range of `seq` that one load generator produces."""

    def __init__(self, client: httpx.Client, name: str, url: str, load: LoadName) -> None:
        """`client`: used by several parts. `name`, `url`: the load generator's. `load`: which part of which load."""
        self._client = client
        self._name = name
        self._url = url.rstrip("/")
        self._load = load
        self._begun = False
        self.acknowledged = 0
        """Records of the part acknowledged, when it was last looked at."""
        self.summary: Summary | None = None
        """What the part came to, once it is done."""

    def share_of(self, rate: float | None, records: int) -> dict[str, float]:
        """The part's option for its share of the rate of a load of `records`; none for a load without a rate."""
        return {} if rate is None else {"rate": rate * (self._load.count or 0) / records}

    def begin(self, options: Mapping[str, Any]) -> None:
        """Begins the part. `options` are those that all parts share, by their names in `loadgen.options.Load`.

        Raises:
            TrialFailed: the load generator does not answer, is busy with something else, or refuses the options.
        """
        body = {**options, **self._load.model_dump()}
        # Beforehand: if no answer comes, it may have begun all the same.
        self._begun = True
        try:
            answer = self._client.post(f"{self._url}/load", json=body)
        except httpx.HTTPError as error:
            raise TrialFailed(
                f"{self._name} at {self._url} cannot be reached ({_why(error)}); start it, or correct its address"
            ) from None
        if answer.status_code == 201:
            return
        self._begun = False
        what = {409: "is busy", 400: "refuses the load"}.get(answer.status_code)
        raise TrialFailed(f"{self._name} {what}: {_error(answer)}" if what else self._strange("POST", answer))

    def look(self) -> Summary | None:
        """Asks how far it is.

        Returns:
            What the part came to; None while it is going on.

        Raises:
            TrialFailed: the load generator died or does not answer, or its load ended otherwise than with every record
                acknowledged.
        """
        try:
            answer = self._client.get(f"{self._url}/load")
        except httpx.TimeoutException:
            raise TrialFailed(f"{self._name} did not answer for {ANSWER_SECONDS:g} s, {self._at()}") from None
        except httpx.HTTPError:
            raise TrialFailed(f"{self._name} died {self._at()}") from None
        state = self._state_in(answer)
        if state.load != self._load:
            now = "nothing" if state.load is None else f"run {state.load.run}"
            raise TrialFailed(f"{self._name} died {self._at()}, and was started anew: it now loads {now}")
        self.acknowledged = state.acknowledged
        self._check(state)
        self.summary = state.summary
        return state.summary

    def cancel(self) -> None:
        """Stops the part if it was begun; one that is not there any more is fine."""
        if not self._begun:
            return
        # One that does not answer is as dead as it can be made from here; whoever cancels tells what ended the load.
        with suppress(httpx.HTTPError):
            self._client.delete(
                f"{self._url}/load",
                params={"run": self._load.run},
                timeout=httpx.Timeout(CANCEL_SECONDS, connect=REACH_SECONDS),
            )

    def _state_in(self, answer: httpx.Response) -> LoadState:
        if answer.status_code != 200:
            raise TrialFailed(self._strange("GET", answer))
        try:
            return LoadState.model_validate_json(answer.content)
        except ValidationError:
            raise TrialFailed(self._strange("GET", answer)) from None

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
    """What a load generator says; of something else that answers, the beginning of its text."""
    try:
        return str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        return " ".join(answer.text[:100].split()) or "no text"


def _why(error: httpx.HTTPError) -> str:
    return str(error) or type(error).__name__
