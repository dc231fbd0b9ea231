"""How many records each trial of a run drains, so that it takes as long as the plan asks for: pure."""

from __future__ import annotations

from sinkbench.errors import ReasonCode
from sinkbench.plan.cells import Cell
from sinkbench.plan.plan import PlanDrain
from sinkbench.plan.sizing import MAXIMUM_RECORDS, MINIMUM_RECORDS, records_for
from sinkbench.results import TrialRecord

# A trial that was too short is taken again with so many times the records at least.
RETAKE_FACTOR = 4.0
# What a cell is taken to store where its pilot stored nothing; its trials then show the same failure, quickly.
FALLBACK_RECORDS_PER_SECOND, FALLBACK_BYTES_PER_SECOND = 1_000.0, 10e6


def is_too_short(record: TrialRecord, asked_seconds: float) -> bool:
    """Whether nothing is wrong with a trial but that its topic was empty too soon, since its pilot was too slow.

    Tasks that never started, in a window shorter than the plan's (`asked_seconds`), came too late for such a topic.
    """
    codes = [reason.code for reason in record.reasons]
    late = codes == [ReasonCode.TASKS_NOT_STARTED] and (record.window_seconds or 0.0) < asked_seconds
    # One that lost records is kept as it is: pilots are in no figure. Where tasks change, duplicates are no fault.
    found = record.audit
    clean = found is not None and (found.clean or (record.rescale is not None and found.lost == found.foreign == 0))
    return (late or codes == [ReasonCode.TOO_SHORT]) and clean and record.records < MAXIMUM_RECORDS


class Sizes:
    """The rate that each place of a plan had last, by which its trials are sized."""

    def __init__(self, drain: PlanDrain, least: int = MINIMUM_RECORDS, mean_bytes: float = 0.0) -> None:
        """`least` is the fewest records of a trial, `mean_bytes` what one has."""
        self._drain = drain
        self._least = least
        most = FALLBACK_BYTES_PER_SECOND / mean_bytes if mean_bytes else FALLBACK_RECORDS_PER_SECOND
        self._fallback = min(FALLBACK_RECORDS_PER_SECOND, most)
        self._rates: dict[str, float] = {}

    def learn(self, place: str, records_per_second: float) -> None:
        """Takes in what a pilot has found."""
        self._rates[place] = records_per_second

    def rate(self, cell: Cell) -> float:
        """Records per second that the cell is taken to store."""
        return self._rates.get(cell.place, self._fallback)

    def records(self, cell: Cell) -> int:
        """Records that fill the window of the cell's next trial."""
        # A drain in which the tasks change is as long before that as after it.
        seconds = self._drain.window_seconds * (1 if cell.before is None else 2)
        return records_for(self.rate(cell), seconds, self._least)

    def see(self, cell: Cell, record: TrialRecord) -> None:
        """Takes in a trial of the cell."""
        if record.pilot and (record.records_per_second is None or record.reasons):
            # Of so short a drain much was the start; the rate is higher than that.
            seen = record.records / (record.window_seconds or self._drain.window_seconds)
            self._rates[cell.place] = max(seen, RETAKE_FACTOR * self._rates.get(cell.place, 0.0))
        elif record.records_per_second and not record.reasons and cell.before is None:
            # The workers' JVMs get faster for a while; the next trial is sized by what was seen last.
            self._rates[cell.place] = record.records_per_second
