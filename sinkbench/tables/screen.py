"""The result of a run on one screen: rates by the job that is done, what they show, and what to do next."""

import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from rich.cells import cell_len
from rich.table import Table

from sinkbench.analysis.rates import usable_rate
from sinkbench.analysis.words import NOT_MEASURED, counted, seconds_each, span, whole
from sinkbench.bottleneck.rules import NOT_IDENTIFIED, causes_of
from sinkbench.metrics.connections import connection_counts
from sinkbench.metrics.metric import find
from sinkbench.metrics.names import cell_name, in_short
from sinkbench.metrics.queries import job_of
from sinkbench.results import CellSummary, RunSummary
from sinkbench.runs.reader import StoredRun, started_at
from sinkbench.summary.answers import compared_cells
from sinkbench.summary.thresholds import threshold_lines
from sinkbench.tables.answers import answer_lines
from sinkbench.tables.cells import is_load, main_tables, resumed_in_words, sections
from sinkbench.tables.comparison import arm_lines
from sinkbench.tables.lines import data_check
from sinkbench.tables.text import plain_text

WIDTH = 100
OPTIONS = ("queries", "cpu", "memory", "pool", "trials", "bottlenecks")
"""The keys of the sections that have an option of `sinkbench show`."""
HEADS = ("", "records/s", "", "CPU s/\nmillion", "disk\nbytes", "connections", "held back by")
_LEAST_LAST = len(HEADS[-1])
_LAST = len(HEADS) - 1
_LEFT = (0, 2, _LAST)
_EMPTY = ("", NOT_MEASURED)
_NOT_FINAL = "NOT FINAL"
# They name what it is about themselves.
_GENERAL = {"machine", "connector", "sink", "topic"}
_SHORT = {"machine CPU": "CPU", "waits for the sink": "sink", "a request a record": "round trips"}
_LOADS = {
    "drain": "Backlog",
    "rescale": "Backlog with a change of tasks,",
    "sustain": "Constant load",
    "capacity": "Search for the highest sustained rate",
    "faults": "Constant load with faults",
}


def screen(kept: StoredRun, width: int = WIDTH, run: str = "") -> str:
    """The result as text of at most `width` columns; `run` is the run's name in the commands that it ends with."""
    summary = kept.summary
    said = [*(line for each in title(kept) for line in _wrapped(each, width, "")), ""]
    tables, notes = result(summary, width)
    for part in tables:
        wide = isinstance(part, str) and cell_len(part) > width
        said += _wrapped(str(part), width, "") if wide else plain_text([part], width).rstrip("\n").split("\n")
        said += [""] if isinstance(part, Table) else []
    said += [""] if said[-1] else []
    if asked := threshold_lines(summary):
        said += [asked[0], *(line for each in asked[1:] for line in _wrapped(each, width)), ""]
    # Its answers, then risks that its rates do not show.
    if shown := [*(arm_lines(kept) or answer_lines(summary)), *risks(kept)]:
        said += ["What this run shows", *(line for each in shown for line in _wrapped(each, width))]
    said += [line for each in notes for line in _wrapped(each, width, "")]
    said += [""] if said[-1] else []
    said += [line for each in _ending(kept, width, run) for line in _wrapped(each, width, "")]
    return "\n".join(said) + "\n"


def title(kept: StoredRun) -> list[str]:
    """What was run, when, for how long, where, and under which load."""
    summary, found = kept.summary, kept.summary.environment
    when = started_at(summary.run)
    began = f"{when[:16].replace('T', ' ')} UTC" if when else ""
    memory, cores, model = (found.get(key) for key in ("memory_bytes", "cpu_count", "cpu_model"))
    machine = [
        f"{counted(int(cores), 'core')}{f' ({model})' if model else ''}" if isinstance(cores, int) else "",
        f"{memory / 1e9:.0f} GB" if isinstance(memory, int | float) else "",
        str(found.get("system") or ""),
        f"stack {found['stack']}" if found.get("stack") else "",
        f"topology {name}" if (name := find(found, "topology.name")) else "",
    ]
    first = f"sinkbench {summary.plan.name}", began, duration(kept), f"run {summary.run}"
    lines = "   ".join(filter(None, first)), ", ".join(filter(None, machine)), load_in_words(kept)
    return [*lines, *filter(None, [resumed_in_words(summary)])]


def duration(kept: StoredRun) -> str:
    """From the first pilot's beginning to the last trial's end, as `12 min`; empty without trials."""
    times = [(datetime.fromisoformat(trial.started_at), trial.seconds) for trial in kept.trials if trial.started_at]
    if not times:
        return ""
    start = started_at(kept.summary.run)
    began = min(at for at, _ in times) if start is None else datetime.fromisoformat(start)
    taken = max(at + timedelta(seconds=seconds) for at, seconds in times) - began
    return f"{max(1, round(taken.total_seconds() / 60))} min"


def load_in_words(kept: StoredRun) -> str:
    summary, cells = kept.summary, kept.summary.cells
    load = _LOADS[str(kept.plan.get("mode") or "drain")]
    size, own = record_bytes(kept), summary.records is not None
    records = "your own records" if own else f"{size:,.0f}-byte JSON" if size else "JSON"
    counts = sorted({(cell.workers, cell.tasks_per_worker) for cell in cells})
    tasks = "tasks as listed"
    if len(counts) == 1:
        tasks = f"{counted(counts[0][0], 'Connect worker')} x {counts[0][1]:g} task{'s' * (counts[0][1] != 1)}"
    rates = [rate for cell in cells if (rate := usable_rate(cell)) is not None]
    trials = counted(max((len(rate.values) for rate in rates), default=0), "trial")
    ranges = "95 % interval" if any(rate.interval for rate in rates) else "lowest-highest"
    median = f"; median ({ranges}) of {trials}" if rates and not is_load(summary) else ""
    return f"{load} of {records}; {tasks}{median}"


def record_bytes(kept: StoredRun) -> float | None:
    """The size of a record by the plan, or of the user's own on average."""
    facts = kept.summary.records
    found = find(kept.plan, "load.record_bytes")
    return getattr(facts, "mean_bytes", None) if facts is not None else found if isinstance(found, int) else None


def jobs(summary: RunSummary) -> list[tuple[str, list[CellSummary]]]:
    """The cells of a drain by the queries that they answer afterwards, most first, and in a group the fastest first;
    each group with its title, which is empty if no query was asked."""
    found: dict[frozenset[str] | None, list[CellSummary]] = {}
    for cell in compared_cells(summary):
        found.setdefault(job_of(cell), []).append(cell)
    order = sorted(found, key=lambda job: -1 if job is None else len(job), reverse=True)
    asked = max((len(cell.queries) for cell in summary.cells), default=0)
    return [(_job(job, asked), sorted(found[job], key=lambda cell: -(seen_rate(cell) or 0))) for job in order]


def _job(job: frozenset[str] | None, asked: int) -> str:
    if not asked:
        return ""
    if job is None:
        return "What these can answer afterwards is not known"
    if len(job) == asked:
        return f"Answers all {asked} test queries from an index"
    if not job:
        return f"Stores only: all {asked} test queries need a full scan, or have no answer"
    return f"Answers {len(job)} of {asked} test queries from an index"


def seen_rate(cell: CellSummary) -> float | None:
    """The rate of a cell, or that of one which is not final."""
    rate = usable_rate(cell)
    if rate is None and cell.passed and cell.at_least is not None:
        return max(cell.at_least.figures.values(), default=None)
    return None if rate is None else rate.median


def rows(summary: RunSummary) -> tuple[list[tuple[str, list[list[str]]]], list[str]]:
    """The groups of `jobs` with a row of texts for each cell, as `HEADS` says, and the notes that they refer to."""
    notes: dict[str, list[str]] = {}
    groups = []
    for heading, cells in jobs(summary):
        texts = []
        for cell in cells:
            state, why = _state(cell)
            # Cells that are not final for the same reason share a note.
            kind = find(cell, "at_least.code") if cell.passed else why
            if why:
                notes.setdefault(kind, []).append(why)
            mark = f" [{list(notes).index(kind) + 1}]" if why else ""
            connections = " -> ".join(map(str, connection_counts(cell.connections)))
            texts.append(
                [
                    cell_name(cell, summary),
                    whole(seen_rate(cell)),
                    f"{state}{mark}",
                    seconds_each(find(cell, "total_cpu_seconds_per_million.median")),
                    whole(find(cell, "disk_bytes_per_record.median")),
                    connections or NOT_MEASURED,
                    _held_back(cell),
                ]
            )
        groups.append((heading, texts))
    more = [f"; {len(each) - 1} more alike" if len(each) > 1 else "" for each in notes.values()]
    found = zip(notes.values(), more, strict=True)
    return groups, [f"[{place}] {each[0]}{rest}." for place, (each, rest) in enumerate(found, 1)]


def _state(cell: CellSummary) -> tuple[str, str]:
    """The range of a rate, or why there is none, in short and in full."""
    if not cell.passed:
        return in_short(cell).replace("\n", ", ").removesuffix(" *"), cell.verdict.rstrip(".")
    if cell.at_least is not None:
        return _NOT_FINAL, cell.at_least.text.rstrip(".")
    rate = usable_rate(cell)
    if rate is None or len(rate.values) < 2:
        return "", ""
    ends = rate if rate.interval is None else rate.interval
    return f"({span(ends.low, ends.high)})", ""


def _held_back(cell: CellSummary) -> str:
    found = cell.bottleneck
    if found is None or found.cause == NOT_IDENTIFIED:
        return NOT_MEASURED if found is None else NOT_IDENTIFIED
    named = [
        _SHORT.get(cause, cause)
        if component in {*_GENERAL, cell.sink} or component.lower() in cause.lower()
        else f"{component}: {cause}"
        for component, cause in causes_of(found)
    ]
    return " or ".join(named)


def result(summary: RunSummary, width: int = WIDTH) -> tuple[list[str | Table], list[str]]:
    """The table of a run's results as lines, or the tables of its mode, and the notes below."""
    if is_load(summary) or not compared_cells(summary):
        failed = [f"{cell_name(cell, summary)}: {cell.verdict}." for cell in summary.cells if not cell.passed]
        return main_tables(summary, width), failed
    groups, notes = rows(summary)
    return [*_aligned(groups, width), "", *main_tables(summary, width)[1:]], notes


def _aligned(groups: Sequence[tuple[str, Sequence[Sequence[str]]]], width: int) -> Iterator[str]:
    """The groups below heads, without columns that are empty, nor connections where names are long; the last wraps."""
    every = [row for _, each in groups for row in each]
    kept = [place for place in range(len(HEADS)) if place < 2 or any(row[place] not in _EMPTY for row in every)]
    heads = [["", *head.split("\n")][-2:] for head in HEADS]
    sizes = [max(map(cell_len, column)) for column in zip(*every, *zip(*heads, strict=True), strict=True)]
    indent = 2 if any(title for title, _ in groups) else 0
    before = sum(sizes[place] + 2 for place in kept if place != _LAST)
    if width - indent - before < _LEAST_LAST and _LAST - 1 in kept:
        kept.remove(_LAST - 1)
        before -= sizes[_LAST - 1] + 2
    sizes[_LAST] = max(min(sizes[_LAST], width - indent - before), _LEAST_LAST)

    def line(texts: Sequence[str]) -> str:
        padded = []
        for place in kept:
            blank = " " * (sizes[place] - cell_len(texts[place]))
            padded.append(f"{texts[place]}{blank}" if place in _LEFT else f"{blank}{texts[place]}")
        return f"{' ' * indent}{'  '.join(padded)}".rstrip()

    yield from map(line, zip(*heads, strict=True))
    for title, each in groups:
        yield from [title] if title else []
        for row in each:
            first, *more = textwrap.wrap(row[_LAST], sizes[_LAST]) or [""]
            yield line([*row[:_LAST], first])
            yield from (line([*[""] * _LAST, text]) for text in more)


def loses_buffered(kept: StoredRun, cell: CellSummary) -> bool:
    """Whether a pipeline loses records when a task stops: its connector aggregates before it writes."""
    config = find(kept.connectors.get(cell.pipeline, {}), "config") or {}
    return any(key.startswith("camel.aggregation.") for key in {**config, **cell.overrides})


def risks(kept: StoredRun) -> list[str]:
    """Which pipelines lose records when a task stops."""
    named = [cell_name(cell, kept.summary) for cell in kept.summary.cells if loses_buffered(kept, cell)]
    if not named:
        return []
    loses = "loses" if len(named) == 1 else "lose"
    return [f"Risk: {', '.join(named)} {loses} buffered records when a task stops or a request is refused."]


def _ending(kept: StoredRun, width: int, run: str) -> Iterator[str]:
    """The data check, what is left to do, and the next commands."""
    summary = kept.summary
    if check := data_check(summary):
        yield check
    taken, wanted = sum(cell.trials for cell in summary.cells), (summary.plan.trials or 0) * len(summary.cells)
    if not summary.complete:
        yield f"NOT FINISHED: {taken} of {wanted} trials. Take the others: sinkbench resume {summary.run}"
    keys = {section.key for section in sections(summary, width, kept.trials)}
    options = " | ".join(f"--{key}" for key in OPTIONS if key in keys)
    of = f" {run}" if run else ""
    yield f"More: sinkbench show{of} {options} | --all"
    latency = "" if is_load(summary) else "     Latency at a rate: sinkbench race sustain"
    yield f"Share: sinkbench report{of}     Compare: sinkbench compare{latency}"


def _wrapped(text: str, width: int, lead: str = "  ") -> list[str]:
    return textwrap.wrap(text, width, initial_indent=lead, subsequent_indent=f"{lead}    "[:4], break_on_hyphens=False)
