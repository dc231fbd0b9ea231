"""What a pipeline's time of one record goes to beyond the time that its sink takes alone: Connect, the connector, or
more work of the sink. With the times of one record of the pipeline, of the sink's limit, of the connector alone and of
Connect (each one divided by the rate):

    pipeline - sink = Connect + (connector alone - Connect) + rest

The rest is what the sink takes more than with plain clients and the default index or table: other indexes, other ways
to write, waiting. Taken by block. The means over blocks are given, since means of parts add up and medians do not."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sinkbench.analysis.intervals import bounds
from sinkbench.analysis.limits import CONNECT, CONNECTOR, best, fastest, rates_by_block
from sinkbench.analysis.rates import usable_rate
from sinkbench.results import CellSummary, RunSummary


@dataclass(frozen=True)
class Part:
    """Microseconds of one record: mean over blocks, and 95 % interval, or with fewer than 5 blocks the ends."""

    estimate: float
    low: float
    high: float
    is_interval: bool = False

    @property
    def least(self) -> float:
        return min(self.estimate, self.low)


@dataclass(frozen=True)
class Attribution:
    """The time beyond the sink's limit, and its parts by name, which add up to it; `blocks` have all rates."""

    gap: Part
    parts: Mapping[str, Part]
    blocks: int


def attribute(
    pipeline: Mapping[int, float], sink: Mapping[int, float], connector: Mapping[int, float], connect: float
) -> Attribution | None:
    """Divides the gap between a pipeline and its sink. All are in records per second, by block, but for Connect's,
    which is measured once. None if no block has all."""
    times = [
        [1e6 / rates[block] for rates in (pipeline, sink, connector)]
        for block in sorted(pipeline.keys() & sink.keys() & connector.keys())
    ]
    if not times:
        return None
    before = 1e6 / connect
    return Attribution(
        _part([whole - direct for whole, direct, _ in times]),
        {
            "Connect": _part([before] * len(times)),
            "connector": _part([alone - before for _, _, alone in times]),
            "sink's other job": _part([whole - direct - alone for whole, direct, alone in times]),
        },
        len(times),
    )


def _part(values: Sequence[float]) -> Part:
    interval = bounds(values, np.mean)
    low, high = interval or (min(values), max(values))
    return Part(statistics.fmean(values), low, high, is_interval=interval is not None)


def attribution_of(cell: CellSummary, run: RunSummary) -> Attribution | str:
    """The attribution of a cell by the limits of its run, or why there is none, for a person."""
    rate, sink, connect = usable_rate(cell), fastest(run.limits, cell.sink), best(run.limits, CONNECT)
    connector = next((each for each in run.limits if each.sink == CONNECTOR and cell.cell in each.cells), None)
    without = "its time beyond the sink's is not divided:"
    if rate is None:
        return f"{without} it has no rate that may be quoted"
    if sink is None or not sink.records_per_second:
        return f"{without} no limit of {cell.sink} was measured"
    if not connect:
        return f"{without} Connect's limit was not measured"
    if connector is None or not connector.records_per_second:
        why = "" if connector is None else f": {connector.note or 'no reason was given'}"
        return f"{without} its connector alone was not measured{why}"
    if sink.in_blocks or connector.in_blocks:
        found = attribute(rate.by_block(), rates_by_block(sink), rates_by_block(connector), connect)
    else:
        found = attribute({0: rate.median}, {0: sink.records_per_second}, {0: connector.records_per_second}, connect)
    return found or f"{without} no block has its rate and both limits"
