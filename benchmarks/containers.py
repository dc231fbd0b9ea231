"""Times the containers and compares them with the local stack; prints the figures that README quotes.

    .venv/bin/python benchmarks/containers.py [times] [agreement]

`times`: building all images with warm download caches and no layer kept, starting until all is healthy, stopping, and
the images' sizes; about four minutes. `agreement`: plans/quick.yaml on the local stack, then on the containers, and how
the ratios between pipelines differ; about 15 minutes. Neither stack may be running.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
COMPOSE = ["docker", "compose", "--project-directory", str(CHECKOUT)]
SINKBENCH = str(CHECKOUT / ".venv" / "bin" / "sinkbench")


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


def rates(stack: str, results: Path) -> dict[str, float]:
    """Median records/s of each pipeline of plans/quick.yaml on a stack."""
    command = [SINKBENCH, "race", str(CHECKOUT / "plans" / "quick.yaml"), "--stack", stack, "--results", str(results)]
    subprocess.run(command, check=True)
    summary = json.loads((results / "latest" / "summary.json").read_text())
    return {cell["pipeline"]: cell["records_per_second"]["median"] for cell in summary["cells"]}


def report_agreement() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = {stack: rates(stack, Path(folder) / stack) for stack in ("local", "compose")}
    for one, other in itertools.combinations(found["local"], 2):
        local, compose = (found[stack][other] / found[stack][one] for stack in ("local", "compose"))
        print(f"{other} to {one}: {local:.2f} local, {compose:.2f} compose, {compose / local - 1:+.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"times": report_times, "agreement": report_agreement}
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(parts))
    wanted = parser.parse_args().parts or list(parts)
    if unknown := sorted(set(wanted) - set(parts)):
        parser.error(f"no such part: {', '.join(unknown)}")
    for part in wanted:
        parts[part]()


if __name__ == "__main__":
    main()
