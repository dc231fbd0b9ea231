"""A run on a terminal: its cells and the charts of what goes on at the foot, the lines that stay above."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live

from sinkbench.live.draw import rows, view_height
from sinkbench.live.state import LiveRun, Snapshot
from sinkbench.ui import Lines

__all__ = ["Drawing", "TerminalUi"]

REFRESHES_PER_SECOND = 2


class Drawing:
    """The view as rich draws it, each time anew in the size that the terminal has then."""

    def __init__(self, now: Callable[[], Snapshot]) -> None:
        self._now = now

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = view_height(options.size.height)
        try:
            yield from rows(self._now(), options.max_width, height, plain=options.ascii_only)
        except Exception as fault:  # noqa: BLE001 - it is drawn whenever a line is said, in the midst of a trial, too
            yield f"the view cannot be drawn: {type(fault).__name__}"


class TerminalUi(Lines):
    """Draws a live run twice a second in a thread of its own. It sees there what happens, so an event costs nothing."""

    def __init__(self, console: Console, live: LiveRun) -> None:
        super().__init__(console)
        drawing = Drawing(live.snapshot)
        self._live = Live(drawing, console=console, transient=True, refresh_per_second=REFRESHES_PER_SECOND)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
