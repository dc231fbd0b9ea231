"""Draws a run as rows of text for a terminal of any size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from sinkbench.live.events import duration
from sinkbench.live.state import CellNow, Snapshot, StepNow

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN_BLOCKS = ".:-=+*%#"
MOST_COLUMNS = 120
LEAST_ROWS = 9
_LABEL_COLUMNS = 6
_STATE_COLUMNS = 8
_TAKEN_COLUMNS = 26
_RATE_COLUMNS = 12
_STYLES = {"running": "bold cyan", "pilot": "cyan", "done": "green", "invalid": "bold red", "waiting": "dim"}
# Head, step, phase, rate, lag, connections and CPU.
_FIXED_ROWS = 7


def view_height(terminal_rows: int) -> int:
    """Rows of the view, with room left for lines above it."""
    return max(1, min(terminal_rows - 1, max(LEAST_ROWS, 2 * terminal_rows // 3)))


def rows(now: Snapshot, columns: int, height: int, *, plain: bool = False) -> list[Text]:
    """Draws the view in at most `height` rows of `columns` columns, 120 at the most; `plain` is for ASCII terminals."""
    columns = min(columns, MOST_COLUMNS)
    blocks = PLAIN_BLOCKS if plain else BLOCKS
    spare = height - _FIXED_ROWS - len(now["cells"])
    charts = _charts(now, columns, blocks)
    cells = _cell_rows(now["cells"], columns, height - _FIXED_ROWS)
    gap = [Text()] if spare >= 2 and cells else []
    drawn = [_head(now), *gap, *cells, *gap, *_step_rows(now["step"]), *charts]
    for row in drawn:
        row.no_wrap = True
        # A number that is cut off without a mark would be another number.
        row.truncate(columns, overflow="crop" if plain else "ellipsis")
    return drawn[:height]


def spark(values: Sequence[float | None], columns: int, blocks: str = BLOCKS) -> str:
    """Draws the last `columns` values as bars, newest at the right, the highest full; no bar for None."""
    shown = list(values[-columns:]) if columns > 0 else []
    top = max((value for value in shown if value is not None), default=0.0)

    def bar(value: float | None) -> str:
        if value is None:
            return " "
        return blocks[0] if top <= 0 else blocks[min(int(len(blocks) * max(value, 0.0) / top), len(blocks) - 1)]

    return "".join(map(bar, shown)).rjust(max(columns, 0))


def in_words(cell: CellNow) -> str:
    """As "2 of 3, 1 invalid, 7 lost"."""
    if not cell["taken"] and cell["of"] is None:
        return ""
    parts = [f"{cell['taken']}" if cell["of"] is None else f"{cell['taken']} of {cell['of']}"]
    parts += [f"{cell['invalid']} invalid"] if cell["invalid"] else []
    parts += [f"{cell['lost']:,} lost"] if cell["lost"] else []
    return ", ".join(parts)


def _head(now: Snapshot) -> Text:
    run, step = now["run"], now["step"]
    parts = [duration(run["elapsed_seconds"])]
    if step["number"]:
        parts.insert(0, f"step {step['number']} of {step['total']}")
    if run["left_seconds"] is not None and run["ending"] is None:
        parts.append(f"about {duration(run['left_seconds'])} left")
    text = Text(", ".join(parts), style="bold")
    return text.append(f"  {run['name']}", style="not bold dim") if run["name"] else text


def _step_rows(step: StepNow) -> list[Text]:
    progress = [step["phase"]]
    if step["done"] is not None and step["records"]:
        share = min(100 * step["done"] / step["records"], 100)
        progress.append(f"{share:.0f} %  {step['done']:,} of {step['records']:,} records")
        progress.append(f"{step['rate']:,.0f}/s" if step["rate"] is not None else "")
    return [Text(step["name"], style="bold cyan"), Text("  ".join(filter(None, progress)))]


def _cell_rows(cells: Sequence[CellNow], columns: int, room: int) -> list[Text]:
    """A row per cell; without room for all, those around the active one and the number of the others."""
    if room <= 0:
        return []
    if len(cells) <= room:
        return [_cell_row(cell, cells, columns) for cell in cells]
    active = next((at for at, cell in enumerate(cells) if cell["state"] in ("running", "pilot")), 0)
    first = max(0, min(active - (room - 1) // 2, len(cells) - (room - 1)))
    shown = range(first, first + room - 1)
    more = f"{len(cells) - len(shown)}{' more' if shown else ''} cells"
    return [*(_cell_row(cells[at], cells, columns) for at in shown), Text(more, style="dim")]


def _cell_row(cell: CellNow, cells: Iterable[CellNow], columns: int) -> Text:
    wanted = max(cell_len(each["cell"]) for each in cells)
    key = max(8, min(wanted, columns - _STATE_COLUMNS - 2 - (_TAKEN_COLUMNS + _RATE_COLUMNS if columns >= 60 else 0)))
    rate = "" if cell["records_per_second"] is None else f"{cell['records_per_second']:,.0f}/s"
    row = Text(set_cell_size(cell["cell"], key) + "  ")
    row.append(cell["state"].ljust(_STATE_COLUMNS), style=_STYLES[cell["state"]])
    return row.append(rate.rjust(_RATE_COLUMNS)).append(f"  {in_words(cell)}")


def _charts(now: Snapshot, columns: int, blocks: str) -> list[Text]:
    """A row each for rate, lag, connections and CPU."""
    found = now["readings"]
    total = [sum(values[at] or 0.0 for values in found["cpu"].values()) for at in range(len(found["seconds"]))]
    clients, servers = _last(found["clients"]), _last(found["servers"])
    each = [(values[-1] or 0.0, name) for name, values in found["cpu"].items() if values[-1] is not None]
    shares = "".join(f"  {name} {value:.2f}" for value, name in sorted(each, reverse=True))
    connections = f"{clients} clients{f', {servers} server' if servers else ''}" if clients else ""
    return [
        _chart("rate", found["rate"], _last(found["rate"], "/s"), columns, blocks),
        _chart("lag", found["lag"], _last(found["lag"], " records"), columns, blocks),
        _chart("conns", found["clients"], connections, columns, blocks),
        _chart("CPU", total, f"{total[-1]:.2f} cores{shares}" if each else "", columns, blocks),
    ]


def _chart(label: str, values: Sequence[float | None], value: str, columns: int, blocks: str) -> Text:
    wide = max(4, min(60, columns // 3))
    row = Text(label.ljust(_LABEL_COLUMNS), style="dim")
    return row.append(spark(values, wide, blocks), style="not dim cyan").append(f" {value}", style="not dim")


def _last(values: Sequence[float | None], unit: str = "") -> str:
    return "" if not values or values[-1] is None else f"{values[-1]:,.0f}{unit}"
