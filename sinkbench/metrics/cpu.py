"""The CPU time of each service per million records, the share that JVMs use for JIT and GC, and that of others."""

from sinkbench.analysis import samples
from sinkbench.analysis.rates import median_known, most
from sinkbench.analysis.words import NOT_MEASURED, percent, tenths
from sinkbench.metrics.memory import by_service
from sinkbench.metrics.metric import ByService, Column, Fields, Metric, Seen, bounds, known, number, over, rounded
from sinkbench.metrics.names import SHORT_NAMES
from sinkbench.metrics.rate import CELLS
from sinkbench.metrics.taken import Taken
from sinkbench.results import CellSummary, JvmCpu, RunSummary, TrialRecord

_NAMES = ("foreign_cores", "stolen_cores", "monitoring_overhead_cores")


def much_foreign(cell: CellSummary, summary: RunSummary) -> float | None:
    """Cores used by others during a cell, if above `MUCH_FOREIGN` of the machine; else None."""
    cores = summary.environment.get("cpu_count")
    if cell.foreign_cores is None or not isinstance(cores, int | float) or not cores:
        return None
    return cell.foreign_cores if cell.foreign_cores > samples.MUCH_FOREIGN * cores else None


def _of_trial(seen: Seen) -> Fields:
    if not seen.drained:
        return {}
    foreign, stolen = samples.foreign_cores(seen.samples, seen.records) or (None, None)
    overhead = samples.monitoring_overhead_cores(seen.samples, seen.records)
    return dict(zip(_NAMES, (rounded(foreign), rounded(stolen), rounded(overhead, 4)), strict=True))


def total_cpu_seconds(trial: TrialRecord) -> float | None:
    """CPU seconds of all services per million records, without sinkbench; None if one could not be read."""
    used = [seconds for name, seconds in trial.cpu_seconds_per_million.items() if name != samples.CONTROLLER]
    return sum(seconds for seconds in used if seconds is not None) if used and None not in used else None


def _cpu(taken: Taken) -> Fields:
    trials = [trial.cpu_seconds_per_million for trial in taken.used]
    services = dict.fromkeys(service for trial in trials for service in trial)
    return {
        "cpu_seconds_per_million": {name: median_known(trial.get(name) for trial in trials) for name in services},
        "total_cpu_seconds_per_million": taken.spread(map(total_cpu_seconds, taken.used)),
    }


def _jvms_of_trial(seen: Seen) -> Fields:
    window = samples.middle(seen.samples, seen.records) if seen.drained else None
    share = None if window is None else samples.compiling_share(seen.samples, *window)
    jvms = samples.jvm_cpu_per_million(seen.counted, seen.records)
    return {"jvm_cpu_seconds_per_million": jvms, "compiling_share": rounded(share)}


def _jvms(taken: Taken) -> Fields:
    jvms = by_service(JvmCpu, [trial.jvm_cpu_seconds_per_million for trial in taken.used])
    return {"jvm_cpu_seconds_per_million": jvms, **over(median_known, "compiling_share")(taken)}


def _all_and_each(cell: CellSummary, _: RunSummary) -> str:
    """CPU seconds of all services together, then of each that is not 0.0, the largest first."""
    known = [(seconds, name) for name, seconds in cell.cpu_seconds_per_million.items() if seconds is not None]
    busy = sorted((-seconds, name) for seconds, name in known if seconds >= 0.05)
    total = cell.total_cpu_seconds_per_million
    words = [f"all:{tenths(total.median, 9.5)}"] if total is not None else []
    words += [f"{SHORT_NAMES.get(name, name)}:{tenths(-less, 9.5)}" for less, name in busy]
    return " ".join(words) or NOT_MEASURED


def _compiling(cell: CellSummary, _: RunSummary) -> str:
    return NOT_MEASURED if cell.compiling_share is None else percent(cell.compiling_share)


def _collecting(cell: CellSummary, _: RunSummary) -> str:
    jvms, total = cell.jvm_cpu_seconds_per_million, cell.total_cpu_seconds_per_million
    used = None if total is None or not jvms else total.median
    return percent(sum(each.gc or 0.0 for each in jvms.values()) / used) if used else NOT_MEASURED


METRICS = (
    Metric(
        "CPU seconds per million records",
        of_trial=lambda seen: {
            "cpu_seconds_per_million": samples.cpu_seconds_per_million(seen.counted, seen.records),
            "node_cpu_ratio": samples.node_cpu_ratio(seen.counted, seen.records),
        },
        of_cell=_cpu,
        columns=[
            # Only this column may wrap: rich shrinks every column that may, including names and verdicts.
            Column(CELLS, 80, "CPU s per\nmillion\nrecords", _all_and_each, "list")
        ],
        heads=["A CPU s per million", "B CPU s per million"],
        place=70,
        exports=[
            number("total_cpu_seconds_per_million", "total_cpu_seconds_per_million.median"),
            *bounds("total_cpu_seconds_per_million", lambda cell, _: cell.total_cpu_seconds_per_million),
        ],
        services=[ByService("cpu_seconds_per_million", lambda cell: cell.cpu_seconds_per_million)],
    ),
    Metric(
        "Compiling and garbage collection",
        of_trial=_jvms_of_trial,
        of_cell=_jvms,
        columns=[
            Column(CELLS, 90, "JIT", _compiling, shown=known("compiling_share")),
            Column(CELLS, 91, "GC", _collecting, shown=known("compiling_share")),
        ],
        place=60,
        exports=[number("compiling_share")],
    ),
    Metric(
        "Foreign load",
        of_trial=_of_trial,
        of_cell=over(most, *_NAMES, of="valid"),
        place=120,
        exports=[*map(number, _NAMES)],
    ),
)
