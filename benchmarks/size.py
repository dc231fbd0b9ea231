"""Races what `sinkbench size` predicts and prints how wrong it was; figures: docs/studies/size-errors.md.

    .venv/bin/python benchmarks/size.py [RESULTS]

Three workers from one and from two, twelve tasks from three and six, 4 KB from 512 bytes, a constant load of 8,000
records/s from drains and one of 2,000. About 25 minutes; the runs are kept in RESULTS (results).
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parent.parent
SINKBENCH = CHECKOUT / ".venv" / "bin" / "sinkbench"
PLAN = {
    "pipelines": ["elasticsearch/reference-bulk", "postgres/reference-copy", "postgres/jdbc"],
    "drain": {"window_seconds": 5},
}
LOAD = {"mode": "sustain", "drain": {"pilot_seconds": 3}}


def race(name: str, results: Path, workers: int, content: dict[str, object]) -> str:
    """Races a plan with so many workers; returns its run."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / f"{name}.yaml"
        plan.write_text(yaml.safe_dump({**PLAN, **content}))
        environment = {**os.environ, "SINKBENCH_WORKERS": str(workers)}
        command = [SINKBENCH, "race", plan, "--results", results, "--quiet"]
        done = subprocess.run(command, env=environment, check=False, stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{name} ended with exit code {done.returncode}")
    return (results / "latest").resolve().name


def main() -> None:
    results = Path(sys.argv[1] if len(sys.argv) > 1 else CHECKOUT / "results").resolve()
    one, two = (race(f"workers-{workers}", results, workers, {}) for workers in (1, 2))
    tasks = race("tasks", results, 3, {"multiples": [1, 2]})
    twelve = race("tasks-12", results, 3, {"multiples": [4]})
    large = race("bytes-4096", results, 3, {"load": {"record_bytes": 4096}})
    low, load = (
        race(f"load-{rate}", results, 3, {**LOAD, "sustain": {"records_per_second": [rate], "seconds": 20}})
        for rate in (2_000, 8_000)
    )
    for raced, sources in ((tasks, (one, two)), (twelve, (tasks,)), (large, (tasks,)), (load, (tasks, low))):
        print(f"\n{raced} from {', '.join(sources)}", flush=True)
        subprocess.run([SINKBENCH, "size", "errors", raced, *sources, "--results", results], check=True)


if __name__ == "__main__":
    main()
