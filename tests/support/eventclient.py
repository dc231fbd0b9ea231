"""A browser as far as a live page's server can tell."""

import json
from typing import Any

import httpx

SECONDS = 60.0


class Client:
    """Hears the events of a page, as a browser does: (kind, data)."""

    def __init__(self, address: str) -> None:
        self._client = httpx.Client(base_url=address, timeout=SECONDS)
        self._stream = self._client.stream("GET", "events")
        self.response = self._stream.__enter__()
        self._lines = self.response.iter_lines()
        self.retry: int | None = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exc: object) -> None:
        self._stream.__exit__(None, None, None)
        self._client.close()

    def next(self) -> tuple[str, Any] | None:
        """The next event; None if there will be no more."""
        kind, data = "message", ""
        for line in self._lines:
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                data += value
            elif name == "retry":
                self.retry = int(value)
            elif not line:
                return kind, json.loads(data) if data else None
        return None

    def state(self) -> dict[str, Any]:
        """The parts of the next state."""
        while (found := self.next()) is not None:
            if found[0] == "state":
                parts: dict[str, Any] = found[1]["parts"]
                return parts
        raise AssertionError("there was none")

    def state_with(self, part: str) -> Any:
        """That part, as soon as it is among the news."""
        while part not in (found := self.state()):
            pass
        return found[part]
