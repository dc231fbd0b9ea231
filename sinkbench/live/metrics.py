"""The figures of a live run as a Prometheus endpoint, at any path; they are read when they are asked for."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, make_asgi_app
from starlette.applications import Starlette
from starlette.routing import Mount

from sinkbench.errors import SettingsError
from sinkbench.live.page import HOST, ONLY_HERE, Served
from sinkbench.live.state import LiveRun
from sinkbench.secrets import redacted
from sinkbench.tables.openmetrics import Families, Row


def metrics_endpoint(live: LiveRun, at: str) -> Served:
    """`at` is PORT on this machine alone, or HOST:PORT. Raises SettingsError if it is neither, or not available."""
    host, _, port = at.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise SettingsError(f"--metrics {at}: give a port, such as 18071, or HOST:PORT, such as 0.0.0.0:18071")
    registry = CollectorRegistry()
    registry.register(Families(lambda: _rows(live)))
    app = Starlette(routes=[Mount("/", make_asgi_app(registry))], middleware=[] if host else ONLY_HERE)
    return Served(app, int(port), "metrics", "--metrics", host or HOST)


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
