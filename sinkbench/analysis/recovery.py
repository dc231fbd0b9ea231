"""How a fault affected a pipeline: times count from the fault, exact to one sampling interval (Connect's status: 1
s). Duplicate rows count as stored, so after a replay the lag appears smaller by their number."""

import statistics
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from sinkbench.analysis.rates import Numbers, progress
from sinkbench.analysis.samples import Sample, stored_counts
from sinkbench.results import Recovery

AS_BEFORE = 0.8
"""A rate of at least this share of the one before the fault is restored: over short windows rates scatter."""
WINDOW_SECONDS = 3.0
"""The window of such a rate, centred on each moment."""
# The step by which the window moves.
_STEP_SECONDS = 0.25
# A shorter gap, or one of at most N usual ones, is a normal write pattern.
_SHORTEST_SECONDS, _USUAL_GAPS = 1.5, 5
# A record seen this soon after a moment may have been stored before it.
_SEEN_SECONDS = 0.5
# Over a shorter time the rate is mostly sampling noise.
_LEAST_BEFORE_SECONDS = 1.0
# The time at the end in which connections are counted.
_LAST_SECONDS = 3.0

# Batching delays records by less.
_LATE_SECONDS = 5.0


def recovery_of(samples: Sequence[Sample], began: float, ended: float | None, tasks: int, target: str = "") -> Recovery:
    """The recovery that a trial's samples show, without its outcome and the audit; times are on the samples' clock. A
    fault without an end lasted until all was stored."""
    times, counts = progress(*stored_counts(samples))
    rises = times[1:][np.diff(counts) > 0]
    since = float(rises[0]) if rises.size else (samples[0].seconds if samples else 0.0)
    before = _rate(times, counts, since, began)
    gaps = _standstills(rises, since, began, _due_until(samples, rises, began))
    rate_seconds = None if before is None else _until_rate(times, counts, began, before)
    if rate_seconds is not None and gaps and rises.size and rises[-1] >= gaps[-1][1]:
        # A window around the end of a standstill may contain enough records.
        rate_seconds = round(max(rate_seconds, gaps[-1][1] - began), 3)
    end = float(rises[-1]) if rises.size else began
    ended = max(began, end) if ended is None else ended
    settled = max(ended, began + (rate_seconds or 0.0))
    failed = [(each.seconds, each.tasks_failed) for each in _from(samples, began) if each.tasks_failed]
    running = [(each.seconds, each.tasks_running) for each in _from(samples, began) if each.tasks_running is not None]
    fewer = [at for at, count in running if count < tasks]
    stuck = round(max((_stuck(samples, at, to, tasks) for at, to in gaps), default=0.0), 3)
    return Recovery(
        target=target,
        began_seconds=round(began, 3),
        ended_seconds=round(ended, 3),
        first_record_seconds=_first_record(gaps, rises, began),
        standstill_seconds=round(max((to - at for at, to in gaps), default=0.0), 3),
        rate_seconds=rate_seconds,
        lag_seconds=None if before is None else _until_lag(samples, since, began, before),
        before_records_per_second=before,
        during_records_per_second=_rate(times, counts, began, min(settled, max(end, ended))),
        after_records_per_second=_rate(times, counts, settled, end),
        failed_tasks=max((count for _, count in failed), default=0) if running else None,
        failed_seconds=round(failed[0][0] - began, 3) if failed else None,
        told_seconds=round(fewer[0] - began, 3) if fewer else None,
        stuck_seconds=stuck if running else None,
        connections_before=_connections([each for each in samples if since <= each.seconds < began]),
        connections_after=_connections(_from(samples, samples[-1].seconds - _LAST_SECONDS) if samples else []),
    )


def late_of(due_us: Numbers, stored_us: Numbers, one_in: int) -> tuple[int | None, float | None]:
    """How many records were stored over 5 s late, and the longest delay in seconds; None twice without all times."""
    late = (stored_us - due_us) / 1e6
    if not late.size or not np.isfinite(late).all():
        return None, None
    return one_in * int((late > _LATE_SECONDS).sum()), round(max(float(late.max()), 0.0), 3)


def without_rates(found: Recovery) -> Recovery:
    """The same for a drain, without rates and lag: there is no steady state before the fault to compare with."""
    unknown = ("rate_seconds", "lag_seconds", "late_records", "latest_seconds")
    rates = ("before_records_per_second", "during_records_per_second", "after_records_per_second")
    return found.model_copy(update=dict.fromkeys((*unknown, *rates)))


def _from(samples: Sequence[Sample], seconds: float) -> list[Sample]:
    return [each for each in samples if each.seconds >= seconds]


def _lag(sample: Sample) -> int | None:
    if sample.in_topic is None or sample.stored is None:
        return None
    return sample.in_topic - sample.stored


def _is_behind(samples: Sequence[Sample]) -> bool:
    known = [each.uncommitted for each in samples if each.uncommitted is not None]
    return bool(known) and known[-1] > 0


def _due_until(samples: Sequence[Sample], rises: Numbers, began: float) -> float | None:
    """When the last record that was never stored was due; None if there is none. If all was read and some lost, that
    is when the last record arrived: later commits say nothing about the sink. If all had arrived before the fault,
    as in a backlog, it is the end if nothing was stored since, else unknown."""
    seen = [each.seconds for each in samples if each.stored is not None]
    if not seen or _is_behind(samples):
        return seen[-1] if seen else None
    lags = [lag for each in samples if (lag := _lag(each)) is not None]
    if not lags or lags[-1] <= 0:
        return None
    sent = [(each.seconds, each.in_topic) for each in samples if each.in_topic is not None]
    last_came = next(at for at, count in sent if count == sent[-1][1])
    if last_came > began:
        return last_came
    return None if rises.size and rises[-1] > began + _SEEN_SECONDS else seen[-1]


def _rate(times: Numbers, counts: Numbers, start: float, end: float) -> float | None:
    """Records stored per second between two times; None if they are less than a second apart."""
    if times.size < 2 or end - start < _LEAST_BEFORE_SECONDS:
        return None
    first, last = np.interp([start, end], times, counts)
    return round(float(last - first) / (end - start), 1)


def _standstills(rises: Numbers, since: float, began: float, still_to: float | None) -> list[tuple[float, float]]:
    """The longer gaps without stored records from the fault on, while records were due (`_due_until`)."""
    usual = [to - at for at, to in pairwise(rises[(rises >= since) & (rises < began)].tolist())]
    shortest = max(_SHORTEST_SECONDS, _USUAL_GAPS * statistics.median(usual)) if usual else _SHORTEST_SECONDS
    moments = [began, *rises[rises > began].tolist(), *([] if still_to is None else [still_to])]
    return [(at, to) for at, to in pairwise(moments) if to - at >= shortest]


def _first_record(gaps: Sequence[tuple[float, float]], rises: Numbers, began: float) -> float | None:
    if not gaps:
        return 0.0
    # A moment after which nothing was stored ends a gap, too.
    return round(gaps[0][1] - began, 3) if rises.size and rises[-1] >= gaps[0][1] else None


def _until_rate(times: Numbers, counts: Numbers, began: float, before: float) -> float | None:
    """Seconds from the fault until the rate was last too low, to within half a window; 0 if it never was. None if it
    still was when too few records were left to decide."""
    # From here on fewer records are left than the window needs at the rate before.
    left = counts[-1] - before * WINDOW_SECONDS
    if before <= 0 or left <= float(np.interp(began, times, counts)):
        return None
    until = float(times[int(np.searchsorted(counts, left, side="left"))])
    middles = np.arange(began, until + _STEP_SECONDS, _STEP_SECONDS)
    ends = (np.interp(middles + side, times, counts) for side in (WINDOW_SECONDS / 2, -WINDOW_SECONDS / 2))
    short = np.flatnonzero(np.subtract(*ends) < AS_BEFORE * before * WINDOW_SECONDS)
    if not short.size:
        return 0.0
    return None if short[-1] == middles.size - 1 else round(float(middles[short[-1]]) + _STEP_SECONDS - began, 3)


def _until_lag(samples: Sequence[Sample], since: float, began: float, before: float) -> float | None:
    """Seconds from the fault until the lag, without lost records, was last above its maximum before (at least the
    records of one second); 0 if it never was, None if it still was at the end."""
    lags = [(each.seconds, lag) for each in samples if (lag := _lag(each)) is not None]
    if not (late := [(at, lag) for at, lag in lags if at >= began]):
        return None
    lost = max(late[-1][1], 0) if not _is_behind(samples) else 0
    usual = max([lag for at, lag in lags if since <= at < began] + [round(before)])
    if not (above := [at for at, lag in late if lag > usual + lost]):
        return 0.0
    later = [at for at, _ in late if at > above[-1]]
    return round(later[0] - began, 3) if later else None


def _stuck(samples: Sequence[Sample], start: float, end: float, tasks: int) -> float:
    inside = [each for each in samples if start <= each.seconds <= end and each.tasks_running is not None]
    said = next((place for place, each in enumerate(inside) if each.tasks_running != tasks), len(inside))
    return inside[said - 1].seconds - start if said else 0.0


def _connections(samples: Sequence[Sample]) -> int | None:
    """The connector's median connections in these samples: to the pooler if one is used."""
    pooled = [each.pool_clients for each in samples if each.pool_clients]
    known = pooled or [each.backends for each in samples if each.backends is not None]
    return round(statistics.median(known)) if known else None
