"""Serves the live run to a browser on this machine, with server-sent events, and its figures to Prometheus.

    GET /              the page; and its style and program
    GET /events        event "state": {"id", "parts"}, first with every part of `sinkbench.live.state.Values`, then
                       with the changed ones, at most twice a second; "ping" every 5 seconds; "end": {"ending"}

One thread does all of it, and nothing while no browser is connected."""

import asyncio
import json
import logging
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.resources import files

import uvicorn
from prometheus_client import CollectorRegistry, make_asgi_app
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from loadgen.server import quiet_config
from sinkbench.errors import SettingsError
from sinkbench.live.state import LiveRun
from sinkbench.secrets import redacted
from sinkbench.tables.openmetrics import Families, Row

HOST = "127.0.0.1"
# How a browser here, or behind a tunnel, addresses this machine. Other names are DNS rebinding by foreign pages.
ONLY_HERE = [Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"], www_redirect=False)]
UPDATE_SECONDS = 0.5
PING_SECONDS = 5
RETRY_MS = 1000
# Time for the last event to reach every browser.
GRACE_SECONDS = 2
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def make_app(live: LiveRun) -> Starlette:
    run = secrets.token_hex(4)

    async def events(_request: Request) -> EventSourceResponse:
        return EventSourceResponse(
            _news(live, run),
            headers=HEADERS,
            ping=PING_SECONDS,
            ping_message_factory=lambda: ServerSentEvent(event="ping", data="", sep="\n"),
            sep="\n",
        )

    return Starlette(
        routes=[
            Route("/", _file("text/html", "sinkbench.live/page.html")),
            Route("/page.css", _file("text/css", "sinkbench.report/colours.css", "sinkbench.live/page.css")),
            Route("/page.js", _file("text/javascript", "sinkbench.live/page.js")),
            Route("/events", events),
        ],
        middleware=ONLY_HERE,
    )


async def _news(live: LiveRun, run: str) -> AsyncIterator[ServerSentEvent]:
    seen = 0
    while True:
        # Read first: if the run has ended, the news below are complete.
        ending = live.ending
        seen, news = live.news(seen)
        if news:
            data = json.dumps({"id": run, "parts": news}, separators=(",", ":"))
            yield ServerSentEvent(event="state", data=data, retry=RETRY_MS, sep="\n")
        if ending is not None:
            yield ServerSentEvent(event="end", data=json.dumps({"ending": ending}), sep="\n")
            return
        await asyncio.sleep(UPDATE_SECONDS)


def _file(kind: str, *names: str) -> Callable[[Request], Response]:
    """Answers with these files, `package/name`, concatenated."""
    places = [name.partition("/") for name in names]
    text = "".join(files(package).joinpath(name).read_text(encoding="utf-8") for package, _, name in places)
    return lambda _request: Response(text, headers=HEADERS, media_type=kind)


@contextmanager
def served(app: Starlette, port: int, what: str, options: str, host: str = HOST) -> Iterator[str]:
    """Serves an application at a host's port, 0: any free one; yields its address. SettingsError if it is not free.

    Its thread takes no signals and keeps no process alive."""
    try:
        listener = socket.create_server((host, port))
    except OSError as error:
        # create_server's own text repeats the address.
        why = (error.strerror or str(error)).partition(" (while")[0].lower()
        raise SettingsError(
            f"{what}: port {port} cannot be listened on ({why}); stop what listens"
            f" there, or give another with {options}"
        ) from None
    for name in ("uvicorn.error", "sse_starlette", "asyncio"):
        # A disconnected browser must not print to the terminal.
        logging.getLogger(name).addHandler(logging.NullHandler())
    with listener:
        # asyncio sets it only for sockets that name their protocol; without it each answer waits for 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = uvicorn.Server(quiet_config(app, GRACE_SECONDS))
        thread = threading.Thread(target=server.run, args=([listener],), name="http", daemon=True)
        thread.start()
        try:
            yield f"http://{host}:{listener.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join(GRACE_SECONDS + 1)


def live_page(live: LiveRun, port: int) -> AbstractContextManager[str]:
    return served(make_app(live), port, "live page", "--live-port or SINKBENCH_LIVE_PORT")


def metrics_endpoint(live: LiveRun, at: str) -> AbstractContextManager[str]:
    """The figures of a live run at any path, read when they are asked for. `at` is PORT on this machine alone, or
    HOST:PORT. Raises SettingsError if it is neither, or not available."""
    host, _, port = at.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise SettingsError(f"--metrics {at}: give a port, such as 18071, or HOST:PORT, such as 0.0.0.0:18071")
    registry = CollectorRegistry()
    registry.register(Families(lambda: _rows(live)))
    app = Starlette(routes=[Mount("/", make_asgi_app(registry))], middleware=[] if host else ONLY_HERE)
    return served(app, int(port), "metrics", "--metrics", host or HOST)


def _rows(live: LiveRun) -> Iterator[Row]:
    """Readings have the pipeline and cell of the current step: empty if it has none, or several."""
    now, moment, summary = live.snapshot(), live.moment, live.summary
    run, step, read = now["run"], now["step"], now["readings"]
    judged = {} if summary is None else {redacted(each.cell): each for each in summary.cells}
    of = {each["cell"]: judged[each["cell"]].pipeline if each["cell"] in judged else "" for each in now["cells"]}
    names = {"pipeline": {of.get(cell, "") for cell in moment.cells}, "cell": {*moment.cells}}
    here = {label: found.pop() if len(found) == 1 else "" for label, found in names.items()}
    yield "run_info", "The run", {"run": run["name"]}, 1
    yield "run_left_seconds", "Estimated time left", {}, run["left_seconds"]
    yield "trial_number", "Number of the current trial; 0: none", here, step["number"]
    yield "trial_start_timestamp_seconds", "Start of the trial", {**here, "trial": step["name"]}, moment.began
    for end, when in (("start", moment.fault_began), ("end", moment.fault_ended)):
        yield f"fault_{end}_timestamp_seconds", f"The {end} of its fault", {**here, "fault": moment.fault}, when
    if moment.sample is not None and read["seconds"]:
        yield "stored_records_per_second", "Records that the sink stores per second", here, read["rate"][-1]
        yield "lag_records", "Records in the topic that are not stored", here, read["lag"][-1]
        for side, counts in (("clients", read["clients"]), ("servers", read["servers"])):
            yield "connections", "Connections of clients, and of the database", {**here, "side": side}, counts[-1]
        for state, count in (("running", moment.sample.tasks_running), ("failed", moment.sample.tasks_failed)):
            yield "tasks", "Tasks of the connector", {**here, "state": state}, count
        for service, cores in read["cpu"].items():
            yield "cpu_cores", "CPU seconds per second", {**here, "service": service}, cores[-1]
    for cell in now["cells"]:
        where, found = {"pipeline": of[cell["cell"]], "cell": cell["cell"]}, judged.get(cell["cell"])
        yield "cell_trials_total", "Trials taken", where, cell["taken"]
        yield "cell_invalid_trials", "Trials whose figures are not used", where, cell["invalid"]
        yield "cell_lost_records_total", "Records lost in all trials", where, cell["lost"]
        yield "cell_records_per_second", "Median of the valid trials", where, cell["records_per_second"]
        if found is not None and found.trials:
            yield "cell_passed", "1 if all that is checked held so far, else 0", where, found.passed
            yield "cell_verdict_info", "The verdict so far", {**where, "verdict": found.verdict}, 1
