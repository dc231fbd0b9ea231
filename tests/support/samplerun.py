"""A run that never took place, kept as a real one is: for tests of what reads kept runs, and their benchmarks."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from sinkbench import results
from sinkbench.analysis.latency import latency_of
from sinkbench.analysis.scalability import Law
from sinkbench.metrics.cost import with_prices
from sinkbench.plan.cells import Cell, expand
from sinkbench.plan.plan import Plan
from sinkbench.runs.store import RunFolder
from sinkbench.summary.cells import scalings, summarize
from tests.support.reasons import because
from tests.support.trials import connectors_in, limit_over, run_summary
from tests.support.trials import trial as any_trial

SCRIPT = "<script>alert(1)</script>"
DOOMED = "7 of 24 tasks FAILED: too many clients already & <b>no more</b>"
PIPELINES = ("postgres/jdbc", "postgres/jdbc-pgbouncer", "elasticsearch/camel-bulk")
_LAWS = (Law(20_000, 0.05, 0.002), Law(12_000, 0.03, 0.001), Law(6_000, 0.1, 0.001))
_CPU = ({"connect": 7.8, "postgres": 12.6}, {"connect": 8.8, "postgres": 24.0, "pgbouncer": 2.5}, {"connect": 52.0})


def keep_run(
    root: Path,
    pipelines: Sequence[str] = PIPELINES,
    multiples: Sequence[int] = (1, 2, 4, 8),
    blocks: int = 5,
    seconds: float = 20.0,
    label: str = "",
    everything: bool = False,
) -> Path:
    """The folder of a run at 3 workers, a trial a block and cell, sampled for so many seconds. `label` is the first
    pipeline's; `everything`: also limits, latencies, a re-scale, a search, an invalid trial."""
    config = {"config": {"batch.size": "500", "note": SCRIPT}}
    connectors = connectors_in(root.parent, *pipelines, text=json.dumps(config, indent=2))
    entries = [
        {"pipeline": each, **({"label": label} if label and not place else {})} for place, each in enumerate(pipelines)
    ]
    load = {"partitions": max(24, 3 * max(multiples))}
    given = {"name": "sample", "pipelines": entries, "multiples": list(multiples), "seed": 1, "load": load}
    plan = Plan.model_validate(given)
    folder = RunFolder.create(root, plan, connectors)
    cells = expand(plan, 3)
    if everything:
        cells += [replace(cells[0], multiple=2, before=1), replace(cells[1], multiple=1, before=2)]
    draw = np.random.default_rng(1)
    trials = [
        _trial(folder, cell, block, pipelines.index(cell.pipeline) % len(_LAWS), seconds, everything, draw)
        for block in range(1, blocks + 1)
        for cell in cells
    ]
    limits: list[results.Limit] = []
    if everything:
        trials[0] = trials[0].model_copy(update={"reasons": [because(DOOMED)], "records_per_second": None})
        copy = results.Limit(sink="postgres", way="COPY", connections=2, batch=1024)
        # The other one was measured once.
        limits = [
            limit_over(copy, *(150_000 + 4_000 * block for block in range(1, blocks + 1))),
            results.Limit(sink="elasticsearch", way="bulk", records_per_second=75_000, connections=8, batch=2048),
        ]
    for trial in trials:
        folder.append_trial(trial)
    prices = results.Prices(currency="EUR", memory_gb_hour=0.005, disk_gb_month=0.1) if everything else None
    summaries = summarize(cells, trials, limits=limits)
    if everything:
        found = [(8_000, "bounded"), (16_000, "bounded"), (32_000, "growing"), (22_600, "growing"), (19_000, "bounded")]
        steps = [results.SearchStep(offered=rate, outcome=outcome, growth_per_second=3.0) for rate, outcome in found]
        steps.append(results.SearchStep(offered=19_000, outcome="bounded", confirms=True))
        summaries[-1] = summaries[-1].model_copy(update={"search": steps})
    lasting = [cell for cell in cells if cell.before is None]
    kept = run_summary(
        *summaries,
        run=folder.run,
        plan=results.PlanRef(name=plan.name, sha256="0", seed=1, trials=blocks),
        environment={"stack": "local", "cpu_model": f"Xeon {SCRIPT}", "cpu_count": 2, "versions": {"java": None}},
        limits=limits,
        scaling=scalings(lasting, [each for each in trials if not each.rescale]),
    )
    folder.write_summary(with_prices(kept, prices))
    return folder.path


def _more(cell: Cell, kind: int, clients: int, draw: np.random.Generator) -> dict[str, object]:
    """What the services held and sent in a trial, in bytes; its latencies, and the pool."""
    total = float(1e9 * (1 + kind) * draw.normal(1, 0.02))
    of_sink = results.Memory(resident_bytes=total / 2, heap_bytes=9e8 if kind == 2 else None)
    connect = results.Memory(resident_bytes=2.4e9, heap_bytes=1.8e9)
    pool = results.Pool(mode="transaction", size=10, most_waiting=clients // 10, longest_wait_ms=12.5)
    return {
        "peak_memory": {"kafka": results.Memory(resident_bytes=9e8), "connect": connect, cell.sink: of_sink},
        "total_peak_memory_bytes": total,
        "disk_bytes_per_record": 600.0 + 100 * kind,
        "fetched_bytes_per_record": 640.5,
        "pool": pool if "pgbouncer" in cell.pipeline else None,
        "latency_ms": latency_of(draw.lognormal(9 + kind, 0.6, 5_000), resolution_ms=1.0),
    }


def _trial(
    folder: RunFolder, cell: Cell, block: int, kind: int, seconds: float, everything: bool, draw: np.random.Generator
) -> results.TrialRecord:
    rate = _LAWS[kind].rate(cell.tasks) * float(draw.normal(1, 0.03))
    times = np.arange(0, seconds, 0.25) + draw.uniform(0, 0.02, int(np.ceil(seconds / 0.25)))
    speeds = rate * np.clip(times / 2, 0, 1) * draw.normal(1, 0.15, len(times)).clip(0.1)
    stored = np.cumsum(speeds * 0.25).astype(int)
    records, trial = int(stored[-1]), f"{kind}{cell.multiple}{cell.before or 0}_{block:03}"
    samples = [
        {"seconds": round(second, 4), "stored": count, "uncommitted": records - count, "backends": 5 * cell.tasks}
        for second, count in zip(times.tolist(), stored.tolist(), strict=True)
    ]
    clients = 5 * cell.tasks + 3
    servers = min(clients, 10) if "pgbouncer" in cell.pipeline else clients
    limit = 100 if cell.sink == "postgres" else None
    rescale = None
    if cell.tasks_before is not None:
        step = {"rebalance_seconds": 1.5, "standstill_seconds": 0.8, "before_records_per_second": rate / 2}
        rescale = results.Rescale(tasks_before=cell.tasks_before, **step)
    fields = {
        **{"trial": trial, "block": block, "seconds": seconds, "records": records, "rescale": rescale},
        "placement": {f"connect-{worker}": cell.multiple for worker in (1, 2, 3)},
        "connections": results.Connections(clients_peak=clients, server_peak=servers, server_limit=limit),
        "cpu_seconds_per_million": {**_CPU[kind], "kafka": 0.6, "controller": 0.3, "loadgen-1": 0.1, "other": None},
        "audit": results.Audit(produced=records, stored=records, lost=0, duplicates=0),
        "bottleneck": results.Bottleneck(
            component="postgres", cause="WAL", evidence=f"60 % of the time {SCRIPT}", also=["a", "b"]
        ),
        **(_more(cell, kind, clients, draw) if everything else {}),
        "samples": folder.write_samples(trial, samples),
    }
    return any_trial(rate, cell, **fields)
