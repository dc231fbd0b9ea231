"""The first screen of a report: question and answer, the chart of rates, risks, and how to reproduce it."""

from collections.abc import Iterator

from sinkbench.analysis.words import whole
from sinkbench.metrics.metric import find
from sinkbench.metrics.names import cell_name
from sinkbench.report.parts import Chart, Figure, Lines, Opening, PageSection, Table, of_rich
from sinkbench.report.plots import Point, points
from sinkbench.results import RunSummary, TrialRecord
from sinkbench.runs.reader import StoredRun
from sinkbench.tables.answers import answer_lines, published_lines
from sinkbench.tables.cells import is_load
from sinkbench.tables.comparison import arm_lines
from sinkbench.tables.lines import data_check
from sinkbench.tables.percell import required_table
from sinkbench.tables.screen import HEADS, jobs, load_in_words, record_bytes, result, risks, rows, seen_rate, title

QUESTIONS = {
    "drain": "Which pipeline stores a backlog fastest, and at what cost?",
    "sustain": "Does each pipeline keep up with a constant load, and with which latency?",
    "capacity": "Which rate does each pipeline sustain?",
    "rescale": "What does it cost to change the tasks of a running connector?",
    "faults": "What becomes of records and rates under faults?",
}
_VERSIONS = {
    "kafka": "Kafka",
    "elasticsearch-server": "Elasticsearch",
    "postgres": "PostgreSQL",
    "pgbouncer": "",
    "camel-kafka-connector": "Camel sink",
    "debezium": "Debezium JDBC sink",
}


def opening(kept: StoredRun, rate: float | None = None) -> Opening:
    """The first screen of a run; `rate` is the required one, in records per second."""
    summary = kept.summary
    chart = rates(summary, kept.trials, rate)
    tables, notes = result(summary, 1_000)
    shown = [of_rich(part, "Result") for part in tables if not isinstance(part, str)]
    if chart is not None and not is_load(summary):
        texts = [row for _, each in rows(summary)[0] for row in each]
        heads = (head.replace("-\n", "").replace("\n", " ") or "range" for head in HEADS[1:])
        shown.insert(0, Table(("pipeline", *heads), texts, "Result", numbers=(1, 2, 3, 4, 5)))
    figures = [PageSection("rates", "Rates", [*([chart] if chart else []), *shown, *([Lines(notes)] if notes else [])])]
    if rate is not None:
        needed = of_rich(required_table(summary, rate), "Headroom, cores and disk at the required rate")
        figures.append(PageSection("required", f"At {whole(rate)} records/s", [needed]))
    none = "No answer: the run has nothing to compare; the tables have what was measured."
    if summary.cells[0].mode == "sustain":
        none = f"{sum(cell.passed for cell in summary.cells)} of {len(summary.cells)} loads were kept up with."
    return Opening(
        question=QUESTIONS[str(kept.plan.get("mode") or "drain")],
        lead=arm_lines(kept) or answer_lines(summary) or [none],
        figures=figures,
        asides=[
            PageSection("risks", "What could go wrong, and what was not tested", [Lines([*untested(kept)], True)]),
            PageSection("again", "How to reproduce it", [Lines([*reproduced(kept)])]),
        ],
    )


def about(kept: StoredRun) -> list[str]:
    """Date, load, versions and machine, below the question."""
    known = {name: find(kept.summary.environment, f"versions.{key}") for key, name in _VERSIONS.items()}
    found = [" ".join(filter(None, (name, str(each).partition(" (")[0]))) for name, each in known.items() if each]
    first, machine, _, *resumed = title(kept)
    load = load_in_words(kept)
    size = record_bytes(kept)
    fastest = max((seen_rate(cell) or 0.0 for cell in kept.summary.cells), default=0.0)
    megabytes = f"; up to {size * fastest / 1e6:.1f} MB/s" if size and fastest else ""
    return [first, f"{load}{megabytes}", ", ".join(found), machine, *resumed]


def rates(summary: RunSummary, trials: list[TrialRecord], required: float | None = None) -> Figure | None:
    """Every trial's rate, by job and cell, a colour a sink; None without rates."""
    taken = [each for each in trials if not each.pilot and not each.reasons and each.records_per_second is not None]
    groups = []
    for heading, cells in jobs(summary):
        made = []
        for cell in cells:
            if (median := seen_rate(cell)) is not None:
                text = f"{whole(median)}{' not final' if cell.at_least else '' if cell.passed else ' NOT PASSED'}"
                final, own = cell.at_least is None, [trial for trial in taken if trial.cell == cell.cell]
                dots = [(trial.records_per_second or 0.0, final and trial.warm is not False) for trial in own]
                made.append(Point(cell_name(cell, summary), cell.sink, text, median, dots))
        groups += [(heading, made)] if made else []
    if not groups:
        return None
    limit = None if required is None else (required, f"required: {whole(required)} records/s")
    told = "; ".join(f"{row.name} {row.text}" for _, made in groups for row in made)
    return Figure(
        "Records stored a second. A line is a cell's median, a dot a trial; hollow: it was not warm or not steady.",
        [Chart(f"Records stored a second by cell: {told}", points("rates", groups, "records/s", limit))],
        "Records per second",
    )


def untested(kept: StoredRun) -> Iterator[str]:
    """What may change the result, and what the run says nothing about."""
    summary, found = kept.summary, kept.summary.environment
    yield from risks(kept)
    yield from published_lines(summary)
    if not summary.complete:
        yield f"The run is not finished; `sinkbench resume {summary.run}` takes the other trials."
    if summary.records is None:
        yield "Records of your own: these are generated NOAA readings. With yours: sinkbench race --records FILE."
    if not is_load(summary):
        yield "Latency: an emptied backlog shows the highest rate only. Under a constant load: sinkbench race sustain."
    if str(kept.plan.get("mode")) != "faults":
        yield "Failures of workers, sinks and the network: sinkbench race faults."
    if found.get("stack") in ("local", "compose"):
        yield "More machines: all services shared this one and its CPU, and no network was between them."
    if find(found, "topology.kafka.replication") == 1:
        yield "Replication: there was one copy of each record."


def reproduced(kept: StoredRun) -> Iterator[str]:
    summary = kept.summary
    if commit := summary.environment.get("commit"):
        yield f"git checkout {commit}"
    seed = "" if summary.plan.seed is None else f"; the order of trials follows from seed {summary.plan.seed}"
    yield f"scripts/setup && .venv/bin/sinkbench race results/{summary.run}/plan.yaml"
    yield f"The plan with every key is below{seed}."
    if check := data_check(summary):
        yield check
