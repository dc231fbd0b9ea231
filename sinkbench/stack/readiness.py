"""Waiting until nodes are ready, for every driver, and common parts of the checks of HTTP services."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Set
from concurrent.futures import ThreadPoolExecutor

import httpx

from sinkbench.errors import ServiceError, StackError
from sinkbench.secrets import redacted
from sinkbench.services.http import http_client
from sinkbench.stack import Endpoint, Say

Check = Callable[[], str | None]
"""Returns None when ready, else what is missing."""
POLL_SECONDS, LOG_LINES = 0.25, 15


def await_ready(
    names: Collection[str],
    checks: Callable[[], Mapping[str, Check]],
    ended: Callable[[], Mapping[str, str]],
    log_tail: Callable[[str], str],
    seconds: float,
    say: Say = lambda line: None,
    start: Callable[[Set[str]], Set[str]] = lambda ready: frozenset(),
) -> None:
    """Waits until the checks of these nodes pass. Raises StackError, with the end of a log, if one ends or is late.

    `ended` returns the states of nodes that do not run. `start` starts those that wait for none but the given nodes,
    which are ready, and returns those that it has not started yet.
    """
    ready: set[str] = set()
    deadline = time.monotonic() + seconds
    with ThreadPoolExecutor(max_workers=max(len(names), 1)) as pool:
        while True:
            waiting, asks = start(ready), checks()
            asked = [name for name in names if name not in ready | waiting]
            answers = pool.map(lambda ask: ask(), [asks.get(name, lambda: "it does not run") for name in asked])
            reasons = dict(zip(asked, answers, strict=True))
            for name in [name for name, reason in reasons.items() if reason is None]:
                ready.add(name)
                say(f"{name} is ready")
            left = [name for name in names if name not in ready]
            if not left:
                return
            down = ended()
            for name in left:
                if name in reasons and name in down:
                    raise StackError(
                        f"{name} died while starting ({down[name]}); the end of its log:\n{log_tail(name)}"
                    )
            if time.monotonic() > deadline:
                why = reasons.get(left[0], "not started")
                raise StackError(f"{left[0]} was not ready in {seconds:.0f} s: {why}\n{log_tail(left[0])}")
            time.sleep(POLL_SECONDS)


def get(endpoint: Endpoint, path: str, timeout_seconds: float) -> httpx.Response | str:
    """Returns the answer of an HTTP service, or in one line why there is none with status 200."""
    try:
        with http_client(endpoint.access, timeout_seconds) as client:
            answer = client.get(f"{endpoint.address}/{path}")
    except (httpx.HTTPError, ServiceError) as error:
        return str(error) or type(error).__name__
    if answer.status_code == httpx.codes.OK:
        return answer
    text = said(answer, 200)
    return f"HTTP {answer.status_code} {answer.reason_phrase}".rstrip() + (f": {text}" if text else "")


def said(answer: httpx.Response, most: int) -> str:
    # Before it is cut, since a part of a secret would not be recognized.
    return " ".join(redacted(answer.text).split())[:most]
