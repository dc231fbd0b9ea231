"""Sizes trials: the number of records that a drain needs to last as long as planned. Pure."""

from __future__ import annotations

from sinkbench.errors import ReasonCode
from sinkbench.plan.cells import Cell
from sinkbench.plan.plan import PlanDrain
from sinkbench.plan.sizing import MAXIMUM_RECORDS, MINIMUM_RECORDS, records_for
from sinkbench.results import TrialRecord

# Minimum factor for the repetition of a trial that was too short.
RETAKE_FACTOR = 4.0
# For cells whose pilot stored nothing; their trials fail quickly in the same way.
FALLBACK_RECORDS_PER_SECOND, FALLBACK_BYTES_PER_SECOND = 1_000.0, 10e6


def is_too_short(record: TrialRecord, asked_seconds: float) -> bool:
    """Whether a trial's only problem is that its topic was empty too soon, as a slow pilot had sized it.

    If tasks did not start, the topic was too small if the window is below the planned `asked_seconds`.
    """
    codes = [reason.code for reason in record.reasons]
    late = codes == [ReasonCode.TASKS_NOT_STARTED] and (record.window_seconds or 0.0) < asked_seconds
    # A trial with losses stays: pilots are in no figure. Changes of tasks may cause duplicates.
    found = record.audit
    clean = found is not None and (found.clean or (record.rescale is not None and found.lost == found.foreign == 0))
    return (late or codes == [ReasonCode.TOO_SHORT]) and clean and record.records < MAXIMUM_RECORDS


class Sizes:
    """The latest rate of each place of a plan, which sizes its trials."""

    def __init__(self, drain: PlanDrain, least: int = MINIMUM_RECORDS, mean_bytes: float = 0.0) -> None:
        """`least` is the minimum of records per trial, `mean_bytes` the mean size of a record."""
        self._drain = drain
        self._least = least
        most = FALLBACK_BYTES_PER_SECOND / mean_bytes if mean_bytes else FALLBACK_RECORDS_PER_SECOND
        self._fallback = min(FALLBACK_RECORDS_PER_SECOND, most)
        self._rates: dict[str, float] = {}

    def learn(self, place: str, records_per_second: float) -> None:
        self._rates[place] = records_per_second

    def rate(self, cell: Cell) -> float:
        """Expected records per second of the cell."""
        return self._rates.get(cell.place, self._fallback)

    def records(self, cell: Cell) -> int:
        """Number of records for the window of the cell's next trial."""
        # Each half, before and after the change of tasks, gets a window.
        seconds = self._drain.window_seconds * (1 if cell.before is None else 2)
        return records_for(self.rate(cell), seconds, self._least)

    def see(self, cell: Cell, record: TrialRecord) -> None:
        if record.pilot and (record.records_per_second is None or record.reasons):
            # A large part of a short drain is its start, so the real rate is higher.
            seen = record.records / (record.window_seconds or self._drain.window_seconds)
            self._rates[cell.place] = max(seen, RETAKE_FACTOR * self._rates.get(cell.place, 0.0))
        elif record.records_per_second and not record.reasons and cell.before is None:
            # JVMs become faster for a while, so the last rate is the best estimate.
            self._rates[cell.place] = record.records_per_second
