"""Shows a run on a terminal: cells and charts at the bottom, messages above them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live

from sinkbench.live.draw import rows, view_height
from sinkbench.live.events import QuietUi
from sinkbench.live.state import LiveRun, Snapshot

REFRESHES_PER_SECOND = 2


class Drawing:
    def __init__(self, now: Callable[[], Snapshot]) -> None:
        self._now = now

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = view_height(options.size.height)
        try:
            yield from rows(self._now(), options.max_width, height, plain=options.ascii_only)
        except Exception as fault:  # noqa: BLE001 - drawn in the midst of a trial, which must not end by it
            yield f"the view cannot be drawn: {type(fault).__name__}"


class TerminalUi(QuietUi):
    """Draws a live run twice a second in a separate thread, so that events cost nothing."""

    def __init__(self, console: Console, live: LiveRun) -> None:
        super().__init__(console)
        drawing = Drawing(live.snapshot)
        self._live = Live(drawing, console=console, transient=True, refresh_per_second=REFRESHES_PER_SECOND)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
