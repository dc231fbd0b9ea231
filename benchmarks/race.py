"""Times `scripts/race` and checks what a run of it must show; figures: docs/studies/repeatability.md.

    .venv/bin/python benchmarks/race.py [stack] [quick] [again]

`stack`: the start and the stop of the stack. `quick`: plans/quick.yaml, timed with both. `again`: `quick` ten times,
which takes two hours, to see how far the first numbers of a newcomer scatter. Without a part, the first two run.
Ratios are of one run.
"""

import argparse
import csv
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
# Of the fastest cells of the first and of the second group.
INDEXES = ("elasticsearch/camel-index", "elasticsearch/camel-bulk")
TABLES = ("postgres/jdbc", "postgres/jdbc-pgbouncer")
RATIOS = {
    "the best of each sink": (TABLES, INDEXES),
    "equal jobs": (("postgres/jdbc-indexed",), INDEXES),
    "as published": (("postgres/jdbc",), ("elasticsearch/camel-index",)),
}
TIMES = 10


def race(plan: str, results: Path) -> tuple[float, Path]:
    """Runs a plan; returns the seconds that it took, and its folder. Exit code 1, a failed check, is accepted."""
    started = time.monotonic()
    command = [str(CHECKOUT / "scripts" / "race"), str(CHECKOUT / "plans" / plan), "--results", str(results)]
    done = subprocess.run(command, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{plan} ended with exit code {done.returncode}")
    return time.monotonic() - started, (results / "latest").resolve()


def cells(run: Path) -> dict[str, dict[str, Any]]:
    """The cells of a run by their label."""
    summary = json.loads((run / "summary.json").read_text())
    return {cell["label"]: cell for cell in summary["cells"]}


def controller_shares(run: Path) -> list[float]:
    """The share of one core that the controller used in each trial, by the samples."""
    shares = []
    for file in sorted((run / "samples").glob("*.csv")):
        with file.open() as lines:
            rows = list(csv.DictReader(lines))
        used = float(rows[-1]["cpu_seconds_controller"]) - float(rows[0]["cpu_seconds_controller"])
        shares.append(used / (float(rows[-1]["seconds"]) - float(rows[0]["seconds"])))
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("stack", "quick", "again")
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(parts))
    wanted = parser.parse_args().parts or parts[:2]
    if unknown := sorted(set(wanted) - set(parts)):
        parser.error(f"no such part: {', '.join(unknown)}")
    with tempfile.TemporaryDirectory() as folder:
        if "stack" in wanted:
            report_stack()
        if "quick" in wanted:
            report_quick(*race("quick.yaml", Path(folder) / "quick"))
        if "again" in wanted:
            report_again([report_one(*race("quick.yaml", Path(folder) / f"quick-{n}")) for n in range(1, TIMES + 1)])


def report_stack() -> None:
    """Prints how long the stack takes to start, until all services are ready, and to stop."""
    for word in ("up", "down"):
        started = time.monotonic()
        subprocess.run([str(CHECKOUT / ".venv" / "bin" / "sinkbench"), word], check=True, stdout=subprocess.DEVNULL)
        print(f"sinkbench {word}: {time.monotonic() - started:.1f} s")


def report_quick(seconds: float, run: Path) -> None:
    found = cells(run)
    print(f"scripts/race, with start and stop of the stack: {seconds:.0f} s")
    rate = {name: cell["records_per_second"]["median"] for name, cell in found.items()}
    slowest = rate["elasticsearch/camel-index"]
    for name in ("elasticsearch/camel-bulk", "postgres/jdbc", "postgres/jdbc-pgbouncer"):
        print(f"{name}: {rate[name] / slowest:.1f} times elasticsearch/camel-index")
    for name, cell in found.items():
        audit = cell["audit"]
        print(f"{name}: {audit['lost']} lost, {audit['duplicates']} duplicated of {audit['produced']:,}")
    shares = sorted(controller_shares(run))
    print(
        f"controller with its probes, share of one core in {len(shares)} trials: "
        f"{shares[0]:.1%} to {shares[-1]:.1%}, median {shares[len(shares) // 2]:.1%}"
    )


def report_one(seconds: float, run: Path) -> tuple[float, dict[str, bool], dict[str, float]]:
    """Prints one of several races.

    Returns:
        Its seconds, whether the rate of each cell may be quoted, and those of the `RATIOS` whose cells all have one.
    """
    rate = {name: (cell["records_per_second"] or {}).get("median") for name, cell in cells(run).items()}
    steady = {name: value is not None for name, value in rate.items()}
    ratios = {
        name: max(rate[each] for each in ours) / max(rate[each] for each in theirs)
        for name, (ours, theirs) in RATIOS.items()
        if all(steady[each] for each in (*ours, *theirs))
    }
    said = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    print(f"{run.name}: {seconds:.0f} s, {sum(steady.values())} of {len(steady)} cells steady; {said}", flush=True)
    return seconds, steady, ratios


def report_again(races: list[tuple[float, dict[str, bool], dict[str, float]]]) -> None:
    seconds = [took for took, _, _ in races]
    print(f"{len(races)} races: {min(seconds):.0f} to {max(seconds):.0f} s")
    for name in races[0][1]:
        print(f"{name}: steady in {sum(steady[name] for _, steady, _ in races)} of {len(races)} races")
    for name in RATIOS:
        known = sorted(ratios[name] for _, _, ratios in races if name in ratios)
        if known:
            spread = f"{known[0]:.2f} to {known[-1]:.2f}, median {statistics.median(known):.2f}"
            print(f"{name}: {spread}, in {len(known)} races")


if __name__ == "__main__":
    main()
