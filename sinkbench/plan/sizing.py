"""Sizes trials, so that a drain lasts as long as planned, and estimates how long the rest of a run takes. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from sinkbench.analysis.samples import FEWEST_FOR_DISK
from sinkbench.errors import ReasonCode
from sinkbench.plan.cells import Cell
from sinkbench.plan.plan import Plan, PlanDrain
from sinkbench.plan.sections import KafkaLoad
from sinkbench.results import TrialRecord

MINIMUM_RECORDS = 2_000
MAXIMUM_RECORDS = 20_000_000
# A trial is this much longer at most for it.
_LONGER_FOR_DISK = 1.5
# Fewer than `MINIMUM_RECORDS` suffice if they have this many bytes.
_MINIMUM_BYTES = 200_000_000
_FEWEST_RECORDS = 200


def least_records(mean_bytes: float) -> int:
    """Minimum number of records of a loaded topic, given their mean size."""
    return max(_FEWEST_RECORDS, min(MINIMUM_RECORDS, int(_MINIMUM_BYTES / mean_bytes)))


def records_for(
    rate_per_second: float, window_seconds: float, minimum: int = MINIMUM_RECORDS, maximum: int = MAXIMUM_RECORDS
) -> int:
    """Returns the records that drain in `window_seconds`, to three digits and within the bounds."""
    records = min(rate_per_second * window_seconds, 10.0 * maximum)
    return min(max(round(float(f"{records:.3g}")), minimum), maximum)


# Minimum factor for the repetition of a trial that was too short.
RETAKE_FACTOR = 4.0
# For cells whose pilot stored nothing; their trials fail quickly in the same way.
FALLBACK_RECORDS_PER_SECOND, FALLBACK_BYTES_PER_SECOND = 1_000.0, 10e6


def is_too_short(record: TrialRecord, asked_seconds: float) -> bool:
    """Whether a trial's only problem is that its topic was empty too soon, as a slow pilot had sized it.

    If tasks did not start, the topic was too small if the window is below the planned `asked_seconds`."""
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

    def records(self, cell: Cell, windows: float = 1.0) -> int:
        """Number of records for the cell's next trial, which is to last so many windows."""
        # Each half, before and after the change of tasks, gets as many.
        seconds = self._drain.window_seconds * windows * (1 if cell.before is None else 2)
        records = records_for(self.rate(cell), seconds, self._least)
        return FEWEST_FOR_DISK if records < FEWEST_FOR_DISK <= records * _LONGER_FOR_DISK else records

    def see(self, cell: Cell, record: TrialRecord) -> None:
        if record.pilot and (record.records_per_second is None or record.reasons):
            # A large part of a short drain is its start, so the real rate is higher.
            seen = record.records / (record.window_seconds or self._drain.window_seconds)
            self._rates[cell.place] = max(seen, RETAKE_FACTOR * self._rates.get(cell.place, 0.0))
        elif record.records_per_second and not record.reasons and cell.before is None:
            # JVMs become faster for a while, so the last rate is the best estimate.
            self._rates[cell.place] = record.records_per_second


USUAL_SEARCH_STEPS = 6
# Reset, load, start, stop and audit, in addition to the drain.
OVERHEAD_SECONDS = 10.0
# A search takes about ten steps.
LIMIT_SECONDS = 40.0
BLOCK_LIMIT_SECONDS = 7.0
"""Includes the start of its clients or connector, and the removal of what they made."""
# A pilot takes at least two of its lengths.
PILOT_LENGTHS = 3


# Of a load on Kafka alone beyond a block's limit: what warms held brokers, their longer duration, and reading metrics.
HELD_WARM_SECONDS, HELD_MORE_SECONDS, TRAFFIC_SECONDS, BACKFILL_MB_PER_SECOND = 80.0, 9.0, 12.0, 150.0


def kafka_more_seconds(load: KafkaLoad, blocks: int) -> float:
    """What the search for a load on Kafka alone, and its blocks, take beyond `BLOCK_LIMIT_SECONDS` each."""
    each = HELD_MORE_SECONDS * (load.cores is not None) + TRAFFIC_SECONDS * load.traffic
    each += (load.backfill_mb or 0.0) / BACKFILL_MB_PER_SECOND
    return HELD_WARM_SECONDS * (load.cores is not None) + (1 + blocks) * each


@dataclass(frozen=True)
class StepsLeft:
    """The remaining steps of a run, with the current one; `warm_up_seconds` is for further rounds of pilots."""

    pilots: int
    limits: int
    trials: int
    in_blocks: int = 0
    warm_up_seconds: float = 0.0


def trial_seconds(plan: Plan, taken: Sequence[float]) -> float:
    load = plan.drain.window_seconds if plan.drains else plan.constant_load.seconds
    return sum(taken) / len(taken) if taken else load + OVERHEAD_SECONDS


def seconds_left(plan: Plan, left: StepsLeft, taken: Sequence[float]) -> float:
    """Duration of the remaining steps; `taken` is the duration of each trial so far."""
    pilot = PILOT_LENGTHS * plan.drain.pilot_seconds + OVERHEAD_SECONDS / 2
    pilots = max(left.pilots * pilot, left.warm_up_seconds)
    limits = left.limits * LIMIT_SECONDS + left.in_blocks * BLOCK_LIMIT_SECONDS
    return pilots + limits + left.trials * trial_seconds(plan, taken)
