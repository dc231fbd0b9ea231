"""The user's view of a run: charts on a terminal that can draw them, else lines."""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Self, cast

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from loadgen.reading import printable
from sinkbench.live.events import Events, Rate, RunStep, Ui, duration, trial_line
from sinkbench.live.state import CellNow, LiveRun, Snapshot, StepNow
from sinkbench.results import TrialRecord
from sinkbench.secrets import redacted

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


REFRESHES_PER_SECOND = 2
PLAIN_SECONDS = 10.0


class QuietUi(Ui):
    """Prints messages and a line for each trial."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, line: str) -> None:
        self._console.print(printable(redacted(line)), markup=False, highlight=False, soft_wrap=True)

    def ended(self, record: TrialRecord) -> None:
        self.say(trial_line(record))


class PlainUi(QuietUi):
    """Also prints each step, and its progress every ten seconds: for a log."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._rate = Rate()
        self._phase = ""
        self._printed = 0.0

    def step(self, step: RunStep) -> None:
        left = "" if step.left_seconds is None else f", about {duration(step.left_seconds)} left"
        self.say(f"[{step.number}/{step.total}] {step.name}{left}")
        self._printed = time.monotonic()

    def phase(self, text: str) -> None:
        self._phase = text
        self._rate = Rate()

    def progress(self, done: int, total: int) -> None:
        rate = self._rate.add(done)
        if time.monotonic() - self._printed >= PLAIN_SECONDS:
            self._printed = time.monotonic()
            self.say(f"    {self._phase}: {done:,} of {total:,} records, {rate:,.0f} records/s")


class TerminalUi(QuietUi):
    """Draws a live run twice a second in a separate thread, so that events cost nothing; messages stand above it."""

    def __init__(self, console: Console, live: LiveRun) -> None:
        super().__init__(console)
        self._now = live.snapshot
        self._live = Live(self, console=console, transient=True, refresh_per_second=REFRESHES_PER_SECOND)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = view_height(options.size.height)
        try:
            yield from rows(self._now(), options.max_width, height, plain=options.ascii_only)
        except Exception as fault:  # noqa: BLE001 - drawn in the midst of a trial, which must not end by it
            yield f"the view cannot be drawn: {type(fault).__name__}"

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


class Both:
    """Passes events to a live run and to the user's view. An error of the live run ends only its events."""

    def __init__(self, live: Events, person: Ui) -> None:
        self._live: Events | None = live
        self._person = person

    def __enter__(self) -> Self:
        self._person.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._person.__exit__(*exception)

    def __getattr__(self, event: str) -> Callable[..., None]:
        return partial(self._tell, event)

    def _tell(self, event: str, *details: Any) -> None:
        if self._live is not None:
            try:
                getattr(self._live, event)(*details)
            except Exception as fault:  # noqa: BLE001 - a view must not end the measurement
                self._live = None
                self._person.say(f"the live view stands still from here on: {type(fault).__name__}: {fault}")
        getattr(self._person, event)(*details)


def choose_ui(console: Console, live: LiveRun | None = None) -> Ui:
    """Returns charts on a terminal that can draw them, else lines, as for a CI job with `FORCE_COLOR`."""
    live = LiveRun() if live is None else live
    moves = console.is_interactive and console.file.isatty()
    return cast("Ui", Both(live, TerminalUi(console, live) if moves else PlainUi(console)))
