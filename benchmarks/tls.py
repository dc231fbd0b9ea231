"""Prints what TLS, users and passwords cost: ratios with their intervals, by rate and by CPU time.

    .venv/bin/python -m benchmarks.tls [--blocks BLOCKS] [--plan PLAN]

Two local stacks are up at the same time, one with SINKBENCH_SECURITY=on, so that both stay warm. In each block
plans/tls.yaml is raced on both, in turn on either first. Both need 15 GB of memory. A block takes about three minutes,
the first, in which both get warm, is not counted. Ratios are secured by not secured, of valid, warm trials alone.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sinkbench.analysis.intervals import FEWEST_BLOCKS, ratio_by_block
from sinkbench.metrics.cpu import total_cpu_seconds
from sinkbench.results import TrialRecord
from sinkbench.runs.store import RunFolder, read_trials
from sinkbench.settings import CHECKOUT, load_settings

OFFSET = 3000
SECURITY = ("off", "on")
Figures = dict[str, dict[str, dict[int, float]]]
"""By security and by pipeline: a figure of each block."""


def environment(security: str) -> dict[str, str]:
    """What the commands for one of the two stacks are given."""
    usual = load_settings()
    name, offset = ("plain", OFFSET) if security == "off" else ("secured", OFFSET + 200)
    return {
        **os.environ,
        "SINKBENCH_STACK": "local",
        "SINKBENCH_SECURITY": security,
        "SINKBENCH_HOME": str(usual.home / f"{name} benchmark"),
        "SINKBENCH_DIST": str(usual.dist),
        "SINKBENCH_PORT_OFFSET": str(usual.port_offset + offset),
    }


def sinkbench(security: str, *arguments: str, accepted: tuple[int, ...] = (0,)) -> None:
    """Runs the command; SystemExit if it ends with another exit code."""
    done = subprocess.run([sys.executable, "-m", "sinkbench", *arguments], check=False, env=environment(security))
    if done.returncode not in accepted:
        raise SystemExit(f"sinkbench {arguments[0]} with SINKBENCH_SECURITY={security} ended with {done.returncode}")


@contextmanager
def both_up() -> Iterator[None]:
    try:
        for security in SECURITY:
            sinkbench(security, "up")
        yield
    finally:
        for security in SECURITY:
            subprocess.run([sys.executable, "-m", "sinkbench", "down"], check=False, env=environment(security))


def raced(security: str, plan: Path, results: Path) -> list[TrialRecord]:
    """The trials of one run that count."""
    # Exit code 1, a check that failed, is seen in the trials.
    sinkbench(security, "race", str(plan), "--results", str(results), accepted=(0, 1))
    found = read_trials(RunFolder((results / "latest").resolve()).trials_path)
    return [each for each in found if not (each.pilot or each.reasons) and each.warm is not False]


def shown(to: str, above: Mapping[int, float], below: Mapping[int, float]) -> str:
    found = ratio_by_block(to, above, below)
    if found is None:
        return "not measured"
    if found.interval is None:
        return f"{found.estimate:.3f} of {found.blocks} blocks; {FEWEST_BLOCKS} give an interval"
    return f"{found.estimate:.3f} ({found.interval.low:.3f} to {found.interval.high:.3f}, {found.blocks} blocks)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=6, help="that are counted (default 6)")
    parser.add_argument("--plan", type=Path, default=CHECKOUT / "plans" / "tls.yaml")
    arguments = parser.parse_args()
    rates: Figures = {security: defaultdict(dict) for security in SECURITY}
    cpu: Figures = {security: defaultdict(dict) for security in SECURITY}
    with tempfile.TemporaryDirectory() as folder, both_up():
        for block in range(arguments.blocks + 1):
            for security in SECURITY if block % 2 else reversed(SECURITY):
                for trial in raced(security, arguments.plan, Path(folder) / f"{block}-{security}"):
                    if block == 0:
                        continue
                    if trial.records_per_second is not None:
                        rates[security][trial.label][block] = trial.records_per_second
                    if (used := total_cpu_seconds(trial)) is not None:
                        cpu[security][trial.label][block] = used
    for label in rates["off"]:
        print(f"{label}: rate {shown(label, rates['on'][label], rates['off'][label])}")
        print(f"{label}: CPU {shown(label, cpu['on'][label], cpu['off'][label])}")


if __name__ == "__main__":
    main()
