"""The figures of a live run as a Prometheus endpoint, at any path; each is read when it is asked for."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from prometheus_client import CollectorRegistry, make_asgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.middleware.trustedhost import TrustedHostMiddleware

from sinkbench.live.page import HOSTS, Served
from sinkbench.live.state import LiveRun, Moment, Snapshot
from sinkbench.secrets import redacted

OF_CELL = ("pipeline", "cell")
Family = TypeVar("Family", CounterMetricFamily, GaugeMetricFamily)


class MetricsEndpoint(Served):
    """The metrics of a live run."""

    def __init__(self, live: LiveRun, port: int) -> None:
        registry = CollectorRegistry()
        registry.register(RunCollector(live))
        app = TrustedHostMiddleware(make_asgi_app(registry), allowed_hosts=HOSTS, www_redirect=False)
        super().__init__(app, port, "metrics", "--metrics")


class RunCollector(Collector):
    """A reading's labels are the pipeline and cell of the current step; empty if it has none, or several. Nothing is
    read between the loads of trials, as during an audit."""

    def __init__(self, live: LiveRun) -> None:
        self._live = live

    def collect(self) -> Iterator[Metric]:
        now, moment, summary = self._live.snapshot(), self._live.moment, self._live.summary
        cells = [] if summary is None else summary.cells
        pipelines = {redacted(each.cell): redacted(each.pipeline) for each in cells}
        run, step = now["run"], now["step"]
        yield InfoMetricFamily("sinkbench_run", "The run", value={"run": run["name"]})
        yield _of(GaugeMetricFamily("sinkbench_run_elapsed_seconds", "Time since the start"), run["elapsed_seconds"])
        yield _of(GaugeMetricFamily("sinkbench_run_left_seconds", "Estimated time left"), run["left_seconds"])
        where = [_one([pipelines.get(cell, "") for cell in moment.cells]), _one(moment.cells)]
        yield _of(_gauge("trial_number", "Number of the current trial; 0: none"), step["number"], where)
        yield _of(GaugeMetricFamily("sinkbench_trials", "Trials of the run; 0: not known"), step["total"])
        yield from _current(now, moment, where)
        taken = CounterMetricFamily("sinkbench_cell_trials", "Trials taken", labels=OF_CELL)
        lost = CounterMetricFamily("sinkbench_cell_lost_records", "Records lost in all trials", labels=OF_CELL)
        invalid = _gauge("cell_invalid_trials", "Trials whose figures are not used")
        rate = _gauge("cell_records_per_second", "Median of the valid trials so far")
        for cell in now["cells"]:
            labels = [pipelines.get(cell["cell"], ""), cell["cell"]]
            _of(taken, cell["taken"], labels)
            _of(lost, cell["lost"], labels)
            _of(invalid, cell["invalid"], labels)
            _of(rate, cell["records_per_second"], labels)
        passed = _gauge("cell_passed", "1 if all that is checked held so far, else 0")
        verdict = InfoMetricFamily("sinkbench_cell_verdict", "The cell's verdict so far", labels=OF_CELL)
        for each in cells:
            if each.trials:
                labels = [pipelines[redacted(each.cell)], redacted(each.cell)]
                _of(passed, each.passed, labels)
                verdict.add_metric(labels, {"verdict": redacted(each.verdict)})
        yield from (taken, lost, invalid, rate, passed, verdict)


def _current(now: Snapshot, moment: Moment, where: list[str]) -> Iterator[Metric]:
    """What was read last, and when trial and fault began."""
    read, sample = now["readings"], moment.sample
    last = {key: values[-1] for key, values in read.items() if key != "cpu" and values} if sample else {}
    rate = _gauge("stored_records_per_second", "Records that the sink stores per second")
    yield _of(rate, last.get("rate"), where)
    yield _of(_gauge("lag_records", "Records in the topic that are not stored"), last.get("lag"), where)
    connections = _gauge("connections", "Connections of clients, and of the database", "side")
    for side in ("clients", "servers"):
        _of(connections, last.get(side), [*where, side])
    yield connections
    tasks = _gauge("tasks", "Tasks of the connector", "state")
    if sample is not None:
        _of(tasks, sample.tasks_running, [*where, "running"])
        _of(tasks, sample.tasks_failed, [*where, "failed"])
    yield tasks
    cores = _gauge("cpu_cores", "CPU seconds per second", "service")
    for service, used in read["cpu"].items() if sample else ():
        _of(cores, used[-1], [*where, service])
    yield cores
    began = _gauge("trial_start_timestamp_seconds", "When the current trial began", "trial")
    yield _of(began, moment.began, [*where, now["step"]["name"]])
    for what, when in (("start", moment.fault_began), ("end", moment.fault_ended)):
        fault = _gauge(f"fault_{what}_timestamp_seconds", f"The {what} of the current trial's fault", "fault")
        yield _of(fault, when, [*where, moment.fault])


def _gauge(name: str, text: str, *more: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"sinkbench_{name}", text, labels=[*OF_CELL, *more])


def _of(family: Family, number: float | None, labels: Sequence[str] = ()) -> Family:
    """The family with a number more, unless it is not known."""
    if number is not None:
        family.add_metric(labels, number)
    return family


def _one(names: Sequence[str]) -> str:
    return names[0] if len(set(names)) == 1 else ""
