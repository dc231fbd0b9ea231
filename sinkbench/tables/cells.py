"""A run in full, in sections of tables and lines: for `sinkbench show`, exports and the report alike."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue
from rich.table import Table

from sinkbench.analysis.rates import usable_rate
from sinkbench.analysis.words import percent, whole
from sinkbench.bottleneck.rules import NOT_IDENTIFIED, causes_of
from sinkbench.errors import ReasonCode
from sinkbench.metrics import WHERE
from sinkbench.metrics.audit import CHANGES
from sinkbench.metrics.connections import LOADS, POOLS
from sinkbench.metrics.cost import COSTS
from sinkbench.metrics.cpu import much_foreign
from sinkbench.metrics.durability import DURABILITY
from sinkbench.metrics.memory import RESOURCES
from sinkbench.metrics.names import cell_name
from sinkbench.metrics.queries import READS
from sinkbench.metrics.rate import CELLS, at_least_in_words
from sinkbench.metrics.recovery import RECOVERIES, RESCALES, STATUS
from sinkbench.results import Bottleneck, CellSummary, Profile, RunSummary, TrialRecord
from sinkbench.summary.thresholds import threshold_lines
from sinkbench.tables import lines
from sinkbench.tables.answers import answer_lines
from sinkbench.tables.faults import fault_line, fault_lines, is_faults, matrix_table
from sinkbench.tables.kafka import kafka_table
from sinkbench.tables.percell import cell_table, cpu_table
from sinkbench.tables.text import new_table, plain_text, words

# Messages of services, which have no common form.
_OF_MANY_KINDS = {ReasonCode.UNKNOWN, ReasonCode.SERVICE_ERROR, ReasonCode.CONNECT_REFUSED}
WIDTH = 140


@dataclass(frozen=True)
class Section:
    """A part of a run; its `key` is the option of `sinkbench show` that prints it."""

    key: str
    title: str
    parts: Sequence[str | Table]


def sections(summary: RunSummary, width: int = WIDTH, trials: Sequence[TrialRecord] = ()) -> list[Section]:
    """All that has data, with tables of at most `width` columns."""
    found: list[tuple[str, str, Sequence[str | Table | None]]] = [
        ("cells", "Cells", _cells(summary, width)),
        ("thresholds", "Thresholds", threshold_lines(summary)),
        ("queries", "Queries", [lines.query_table(summary), cell_table(READS, summary), *lines.query_lines(summary)]),
        ("bottlenecks", "Bottlenecks and limits", _bottlenecks(summary)),
        ("cpu", "CPU time", [cpu_table(summary)]),
        ("memory", "Memory and disk", [cell_table(RESOURCES, summary)]),
        ("cost", "Cost", [cell_table(COSTS, summary), *lines.price_lines(summary)]),
        ("pool", "Connection pool", [cell_table(POOLS, summary)]),
        ("durability", "Durability", [cell_table(DURABILITY, summary)]),
        ("notes", "Notes", remarks(summary)),
        ("trials", "Trials", [trial_table(summary, trials)]),
    ]
    kept = [Section(key, title, [part for part in parts if part is not None]) for key, title, parts in found]
    return [section for section in kept if section.parts]


def render(summary: RunSummary, width: int = WIDTH, trials: Sequence[TrialRecord] = ()) -> str:
    """The whole run as text, without colours."""
    parts: list[str | Table] = [*heading(summary), "", *answer_lines(summary), ""]
    for section in sections(summary, width, trials):
        parts += spaced(section.parts)
    return plain_text([*parts, WHERE], width)


def spaced(parts: Sequence[str | Table]) -> Iterator[str | Table]:
    """The parts of a section with an empty line after each table, and after the last line."""
    for part in parts:
        yield part
        if isinstance(part, Table):
            yield ""
    if isinstance(parts[-1], str):
        yield ""


def heading(summary: RunSummary) -> list[str]:
    """The lines above the table: the run, its plan and its machine."""
    plan, found = summary.plan, summary.environment
    machine = machine_in_words(found)
    parts = [
        f"plan {plan.name}",
        f"trials {plan.trials}" if plan.trials is not None else "",
        f"seed {plan.seed}" if plan.seed is not None else "",
        f"stack {found['stack']}" if found.get("stack") else "",
        f"machine {machine}" if machine else "",
        resumed_in_words(summary),
    ]
    unfinished = "" if summary.complete else " (not finished)"
    return [f"run {summary.run}{unfinished}", ", ".join(filter(None, parts))]


def remarks(summary: RunSummary) -> list[str]:
    """Faults and notes of each cell in full, and what holds for the whole run."""
    found = []
    for cell in summary.cells:
        name = cell_name(cell, summary)
        found += [f"{name}: {each}" for each in _wrong(cell)]
        if cell.at_least is not None:
            least = at_least_in_words(cell)
            found.append(f"{name}: {f'{least} records/s, ' if least else ''}{cell.at_least.text}")
        found += [f"* {name}: {note}" for note in cell.notes]
        if (foreign := much_foreign(cell, summary)) is not None:
            found.append(
                f"{name}: up to {foreign:.1f} cores were busy with other load"
                f" ({cell.stolen_cores or 0.0:.1f} of them stolen by a hypervisor): compare runs of a quieter machine"
            )
    found += lines.record_lines(summary)
    if is_load(summary):
        return found
    rates = [rate for cell in summary.cells if (rate := usable_rate(cell)) is not None]
    if any(rate.interval is None and len(rate.values) > 1 for rate in rates):
        found.append("Ranges in brackets are min-max; confidence intervals need at least 5 trials.")
    overhead = [cell.monitoring_overhead_cores for cell in summary.cells if cell.monitoring_overhead_cores is not None]
    if overhead:
        found.append(f"Monitoring overhead: at most {percent(max(overhead))} of one core.")
    return found


def machine_in_words(environment: Mapping[str, JsonValue]) -> str:
    model, cores = environment.get("cpu_model"), environment.get("cpu_count")
    return ", ".join([*([str(model)] if model else []), *([f"{cores} cores"] if cores else [])])


def resumed_in_words(summary: RunSummary) -> str:
    """As `resumed 2026-11-21T03:48:00Z`; empty if the run was not interrupted."""
    return f"resumed {' and '.join(summary.resumed)}" if summary.resumed else ""


def is_load(summary: RunSummary) -> bool:
    """Whether the run offered constant loads: modes sustain, capacity and faults."""
    return bool(summary.cells) and summary.cells[0].mode in ("sustain", "capacity", "faults")


def main_tables(summary: RunSummary, width: int = WIDTH) -> list[str | Table]:
    """The result of a run in the tables of its mode."""
    if is_faults(summary):
        return [matrix_table(summary), fault_line(summary), *fault_lines(summary)]
    rates = LOADS if is_load(summary) else CELLS
    tables = [*(cell_table(key, summary, width) for key in (rates, RESCALES)), kafka_table(summary)]
    return [table for table in tables if table is not None]


def trial_table(summary: RunSummary, trials: Sequence[TrialRecord]) -> Table | None:
    """Every trial in the order taken; None without any."""
    names = {cell.cell: cell_name(cell, summary) for cell in summary.cells}
    rows = []
    for trial in trials:
        why = trial.invalid[0] if trial.invalid else "no: not warm" if trial.warm is False else "yes"
        row = (
            names.get(trial.cell, trial.label),
            "pilot" if trial.pilot else f"{trial.block}",
            whole(trial.records),
            whole(trial.records_per_second),
            whole(trial.warm_up_seconds),
            whole(trial.seconds),
            f"no: {why}" if trial.invalid else why,
        )
        rows.append(row)
    heads = ("block", "records", "records/s", "warm-up\nseconds", "seconds", words("used"))
    return new_table("cell", *heads, rows=rows) if rows else None


def _cells(summary: RunSummary, width: int) -> list[str | Table | None]:
    recovered = [cell_table(key, summary) for key in (RECOVERIES, STATUS)] if is_faults(summary) else []
    law = lines.scaling_table(summary.scaling) if summary.scaling else None
    scaling, changes = map(lines.scaling_line, summary.scaling), cell_table(CHANGES, summary)
    return [*main_tables(summary, width), *recovered, law, *scaling, changes, *lines.load_lines(summary)]


def _bottlenecks(summary: RunSummary) -> list[str | Table | None]:
    found = [(cell_name(cell, summary), cell.bottleneck) for cell in summary.cells if cell.bottleneck is not None]
    limits = map(lines.limit_line, summary.limits)
    limited = (_limited(name, each) for name, each in found)
    return [*limits, *limited, *map(_profiled, summary.profiles), *lines.attribution_lines(summary)]


def _profiled(found: Profile) -> str:
    top = ", ".join(f"{percent(share)} {frame}" for frame, share in found.top.items())
    return f"{found.cell}, on top of {found.service}'s stacks ({whole(found.samples)} samples): {top}"


def _wrong(cell: CellSummary) -> list[str]:
    """The verdict of a failed cell, then the first of each kind of reason."""
    kinds = {each.code if each.code not in _OF_MANY_KINDS else each.text: each.text for each in cell.reasons[::-1]}
    texts = dict.fromkeys(text for text in reversed(kinds.values()) if text not in cell.verdict)
    return [] if cell.passed else [cell.verdict, *texts]


def _limited(name: str, found: Bottleneck) -> str:
    if found.cause == NOT_IDENTIFIED:
        return f"{name}: what limits it is not identified ({found.evidence})"
    also = f"; also {'; '.join(found.also)}" if found.also else ""
    causes = " or ".join(", ".join(each) for each in causes_of(found))
    return f"{name}: limited by {causes}: {found.evidence}{also}"
