"""How pipelines recovered from injected faults: a matrix, and each cell in full."""

import re

from rich.table import Table

from sinkbench.analysis.words import NOT_MEASURED, counted, tenths, whole
from sinkbench.errors import ReasonCode
from sinkbench.results import CellSummary, Recovery, RunSummary
from sinkbench.tables.text import new_table, words

# A shorter standstill that Connect does not report gets no line.
_LONG_STUCK_SECONDS = 3.0
# The legend of the matrix, by patterns of its words.
_LEGEND = (
    (r"(?m)^back ", "back: until the rate was as before."),
    (r"(?m)^flows ", "flows: until records came again."),
    ("rate not seen", "rate not seen: it was not as before while records came."),
    (r"(?m)^\S+ of \S+/s$", "5 of 9/s: it went on, but only at 5 of the 9 records/s of before."),
    (r"(?m)^uneven ", "uneven: without a fault it took so long, too; a shorter time of that pipeline is no recovery."),
    (r"(?m)^stuck ", "stuck: nothing was stored while Connect called every task RUNNING."),
    (r"(?m)^poison ", "poison 0/9 in: of 9 bad records none is stored."),
    ("poison dead", "7 poison dead: 7 bad records are dead letters; of the rest of those not stored there is no word."),
)


def is_faults(summary: RunSummary) -> bool:
    return bool(summary.cells) and summary.cells[0].mode == "faults"


def matrix_table(summary: RunSummary) -> Table:
    """The faults and the pipelines in the plan's order, and the cell of each pair. Each load or number of tasks is a
    separate pipeline, named by the cell's key without the fault."""
    places = {_place(cell): cell.label for cell in summary.cells}
    names = places if len(set(places.values())) == len(places) else {place: place for place in places}
    cells = {(cell.fault or "", names[_place(cell)]): cell for cell in summary.cells}
    faults = dict.fromkeys(fault for fault, _ in cells)
    rows = [[fault, *(_in_short(cells.get((fault, each))) for each in names.values())] for fault in faults]
    return new_table("fault", *(words(each.replace("/", "/\n", 1)) for each in names.values()), rows=rows)


def fault_line(summary: RunSummary) -> str:
    """The result of the run in one or two sentences; cells without a fault are for comparison, and not counted."""
    hit = [cell for cell in summary.cells if cell.recovery is None or cell.recovery.target]
    broken = [cell for cell in hit if cell.recovery is not None]
    missing = len(hit) - len(broken)
    losing = [cell for cell in broken if _lost(cell)]
    aside = [cell.recovery.dead_letters for cell in broken if cell.recovery is not None and cell.recovery.dead_letters]
    altered = [cell for cell in broken if cell.audit is not None and cell.audit.altered]
    unchecked = [cell for cell in broken if _is_unchecked(cell)]
    unknown = [cell for cell in broken if cell.audit is None or cell.not_audited]
    keeping = [cell for cell in broken if cell not in losing and cell not in unknown]
    by_hand = [cell for cell in broken if cell.recovery is not None and cell.recovery.acts]
    down = [cell for cell in broken if cell.recovery is not None and not cell.recovery.recovered]
    silent = [cell for cell in broken if cell not in down and cell.recovery is not None and cell.recovery.is_silent]
    if not hit:
        return "Nothing was broken."
    said = [f"{len(keeping)} of {counted(len(hit), 'cell')} with a fault lost no record"]
    if losing:
        worst = max(losing, key=_lost)
        said.append(f"the most, {_lost(worst):,}, were lost by {worst.label} under {worst.fault}")
    more = (
        (aside, f"{sum(aside):,} records of {counted(len(aside), 'cell')} are dead letters, and not in the sink"),
        (altered, f"{counted(len(altered), 'cell')} stored records that are not as they were sent"),
        (unchecked, f"of {len(unchecked)} it is not known whether they are as they were sent"),
        (missing, f"{missing} {'is' if missing == 1 else 'are'} invalid, or not taken yet"),
        (unknown, f"of {len(unknown)} it is not known, since not every trial could be audited"),
        (down, f"{len(down)} did not recover at all"),
        (silent, f"{len(silent)} stored nothing any more"),
        (by_hand, f"{len(by_hand)} did not recover without a person"),
        (not (missing or down or silent or by_hand), "all recovered without a person"),
    )
    said += [text for told, text in more if told]
    return f"{'; '.join(said)}."


def fault_lines(summary: RunSummary) -> list[str]:
    """A line for each cell that needed a manual step, and how to read the matrix."""
    shown = "\n".join(_in_short(cell) for cell in summary.cells)
    acts = [(cell, act) for cell in summary.cells if cell.recovery is not None for act in cell.recovery.acts]
    return [
        *(
            f"{cell.label}, {cell.fault}: manual action {act.seconds:.0f} s after the fault: {act.command}"
            for cell, act in acts
        ),
        *([" ".join(legend)] if (legend := [text for word, text in _LEGEND if re.search(word, shown)]) else []),
    ]


def _place(cell: CellSummary) -> str:
    return cell.cell.partition("!")[0]


def _lost(cell: CellSummary) -> int:
    return 0 if cell.audit is None else cell.audit.lost


def _is_unchecked(cell: CellSummary) -> bool:
    return cell.at_least is not None and cell.at_least.code == ReasonCode.CONTENT_NOT_CHECKED


def _in_short(cell: CellSummary | None) -> str:
    """The outcome of a cell on two or three short lines; `NOT_MEASURED` if the plan has no such cell."""
    if cell is None:
        return NOT_MEASURED
    if (found := cell.recovery) is None:
        return "invalid" if cell.trials else "not taken"
    counts = [] if cell.audit is not None else ["not audited"]
    counts += [f"LOST {_lost(cell):,}"] if _lost(cell) else []
    counts += [f"dupl. {cell.audit.duplicates:,}"] if cell.audit is not None and cell.audit.duplicates else []
    counts += [f"{found.dead_letters:,} dead letters"] if found.dead_letters else []
    counts += [f"ALTERED {cell.audit.altered:,}"] if cell.audit is not None and cell.audit.altered else []
    counts += ["not all audited"] if cell.audit is not None and cell.not_audited else []
    lines = counts or ["each once"]
    lines += ["unchecked"] if _is_unchecked(cell) else []
    if not found.recovered:
        lines.append("NOT RECOVERED")
    elif found.is_silent:
        lines.append("nothing since")
    elif not found.target:
        # The control without a fault.
        lines += [f"uneven {tenths(found.rate_seconds)} s"] if not found.target and found.rate_seconds else []
        return "\n".join(lines)
    elif cell.backlog_records is not None:
        # A drain has no steady rate to return to.
        lines.append(f"flows {tenths(found.first_record_seconds)} s" if found.first_record_seconds else "no break")
    elif found.rate_seconds is None:
        lines += [f"flows {tenths(found.first_record_seconds)} s"] if found.first_record_seconds else []
        lines.append(_slower(found) or "rate not seen")
    else:
        lines.append(f"back {tenths(found.rate_seconds)} s" if found.rate_seconds else "no break")
    if found.poison_stored is not None:
        lines.append(f"poison {found.poison_stored}/{found.poisoned} in")
        lines += [] if found.poison_dead is None else [f"{found.poison_dead} poison dead"]
    lines += ["manual action"] if found.acts else []
    lines += [f"stuck {tenths(found.stuck_seconds)} s"] if (found.stuck_seconds or 0.0) >= _LONG_STUCK_SECONDS else []
    return "\n".join(lines)


def _slower(found: Recovery) -> str | None:
    """The rate of a cell that never stopped but was slower until the end; else None."""
    before, during = found.before_records_per_second, found.during_records_per_second
    if found.standstill_seconds or before is None or during is None or during >= before:
        return None
    return f"{whole(during)} of {whole(before)}/s"
