"""The events of a run, and their words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sinkbench.analysis.latency import lag_in_words
from sinkbench.analysis.words import percent
from sinkbench.results import Recovery, RunSummary, TrialRecord
from sinkbench.trial.observer import Observer


@dataclass(frozen=True)
class RunStep:
    """A pilot, limit or trial that begins, with its cells' keys, seconds left, and `number` of `total` trials, or 0."""

    number: int
    total: int
    name: str
    kind: Literal["pilot", "limit", "trial"]
    cells: tuple[str, ...] = ()
    left_seconds: float | None = None


@dataclass(frozen=True)
class Ports:
    """Where a run is shown: port of the live page, and PORT or HOST:PORT of its metrics. 0: any, None: not shown."""

    page: int | None = None
    metrics: str | None = None


class Events(Observer):
    """What a run reports to its observers, which override some."""

    def begin(self, run: str, cells: Sequence[str], trials: int | None, kept: Sequence[TrialRecord] = ()) -> None:
        """A run begins with at most `trials` trials per cell; a resumed run already has `kept`."""

    def say(self, line: str) -> None:
        """A message for the user."""

    def step(self, step: RunStep) -> None:
        """A pilot, limit or trial begins."""

    def ended(self, record: TrialRecord) -> None:
        """A trial ended."""

    def judged(self, summary: RunSummary) -> None:
        """The summary of the trials so far was written."""


def duration(seconds: float) -> str:
    """As 45 s, 3 min 20 s, 1 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def trial_line(record: TrialRecord) -> str:
    """A trial in one line: its rate or lag, and its audit; or why it is invalid."""
    if record.invalid:
        return f"{record.cell}: invalid: {'; '.join(record.invalid)}; {_audit(record)}"
    if record.recovery is not None:
        line = f"{record.cell}: {_recovery(record.recovery)}"
    elif record.offered_records_per_second is None:
        line = f"{record.cell}: {record.records_per_second:,.0f} records/s over {record.window_seconds:.1f} s"
        if record.warm is False and record.compiling_share is not None:
            line += f", not warm ({percent(record.compiling_share)} of the CPU time spent compiling)"
    else:
        line = f"{record.cell}: offered {record.offered_records_per_second:,.0f} records/s, {lag_in_words(record.lag)}"
    return f"{line}, {_audit(record)}"


def _recovery(found: Recovery) -> str:
    if not found.recovered:
        return "did not recover"
    if found.is_silent:
        return "nothing was stored any more"
    if not found.target:
        return "nothing was broken"
    back = "recovered" if found.rate_seconds is None else f"rate as before after {found.rate_seconds:.1f} s"
    return f"{back}, restarted manually" if found.acts else back


def _audit(record: TrialRecord) -> str:
    found = record.audit
    if found is None:
        return f"not audited: {record.not_audited}" if record.not_audited else "not audited"
    counts = {"lost": found.lost, "duplicated": found.duplicates}
    if found.stale is not None:
        counts = {"stale": found.stale, "missing": found.missing or 0, "not deleted keys": found.not_deleted or 0}
    counts |= {"dead letters": found.dead_letters} if found.dead_letters else {}
    return f"{', '.join(f'{count:,} {what}' for what, count in counts.items())} of {found.produced:,}"
