"""Times the containers and compares them with the local stack; figures: docs/studies/repeatability.md.

    .venv/bin/python benchmarks/containers.py [times] [agreement] [--results FOLDER]

`times`, about four minutes: to build all images with warm download caches and without kept layers, to start until all
is healthy, and to stop; and the images' sizes. `agreement`, about 18 minutes: plans/quick.yaml with five trials on the
local stack and on the containers, and how the ratios between pipelines differ. Neither stack may run before.
"""

import argparse
import itertools
import json
import re
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap

CHECKOUT = Path(__file__).resolve().parent.parent
COMPOSE = ["docker", "compose", "--project-directory", str(CHECKOUT)]
SINKBENCH = str(CHECKOUT / ".venv" / "bin" / "sinkbench")
PARTS = ("times", "agreement")
TRIALS = 5


def timed(name: str, *command: str) -> None:
    """Runs a command and prints how long it took."""
    started = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)


def report_times() -> None:
    subprocess.run([*COMPOSE, "build"], check=True, capture_output=True)
    timed("docker compose build, download caches warm, no layer kept", *COMPOSE, "build", "--no-cache")
    timed("docker compose up --wait, without a race", *COMPOSE, "up", "--detach", "--wait", "--scale", "controller=0")
    timed("docker compose down", *COMPOSE, "down")
    images = subprocess.run([*COMPOSE, "config", "--images"], check=True, capture_output=True, text=True).stdout
    for image in sorted(set(images.split())):
        size = subprocess.run(
            ["docker", "image", "inspect", "--format", "{{.Size}}", image], check=True, capture_output=True, text=True
        ).stdout
        print(f"{image}: {int(size) / 1e6:.0f} MB")


def rates(stack: str, plan: Path, results: Path) -> dict[str, list[float]]:
    """Records/s of each valid trial of each pipeline of a plan on a stack."""
    subprocess.run([SINKBENCH, "race", str(plan), "--stack", stack, "--results", str(results)], check=True)
    summary = json.loads((results / "latest" / "summary.json").read_text())
    return {cell["pipeline"]: cell["records_per_second"]["values"] for cell in summary["cells"]}


def change(*trials: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    """The change of a ratio between two pipelines: (other in B / one in B) / (other in A / one in A), less 1."""
    one_a, other_a, one_b, other_b = (np.median(each, axis=axis) for each in trials)
    return np.asarray(other_b / one_b / (other_a / one_a) - 1)


def report_agreement(results: Path) -> None:
    plan = results / "agreement.yaml"
    text = (CHECKOUT / "plans" / "quick.yaml").read_text()
    plan.write_text(re.sub(r"^trials: \d+", f"trials: {TRIALS}", text, flags=re.MULTILINE))
    found = {stack: rates(stack, plan, results / stack) for stack in ("local", "compose")}
    for one, other in itertools.combinations(found["local"], 2):
        trials = [np.array(found[stack][name]) for stack in ("local", "compose") for name in (one, other)]
        local, compose = (np.median(b) / np.median(a) for a, b in (trials[:2], trials[2:]))
        interval = bootstrap(trials, change, method="percentile", rng=0).confidence_interval
        print(
            f"{other} to {one}: {local:.2f} local, {compose:.2f} compose, {change(*trials):+.0%}"
            f" (95 % interval {interval.low:+.0%} to {interval.high:+.0%})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--results", type=Path, help="where the races of `agreement` are kept (default: not at all)")
    arguments = parser.parse_args()
    wanted = arguments.parts or list(PARTS)
    if unknown := sorted(set(wanted) - set(PARTS)):
        parser.error(f"no such part: {', '.join(unknown)}")
    if "times" in wanted:
        report_times()
    if "agreement" in wanted:
        with tempfile.TemporaryDirectory() as folder:
            results = arguments.results or Path(folder)
            results.mkdir(parents=True, exist_ok=True)
            report_agreement(results)


if __name__ == "__main__":
    main()
