"""Races two equal arms and one that waits 5 % longer, and prints how often `sinkbench compare` finds a difference;
figures: docs/studies/equal-arms.md.

    .venv/bin/python -m benchmarks.arms          # races for about an hour, then compares
    .venv/bin/python -m benchmarks.arms RUN      # compares the blocks of a run that is there

The arms `one` and `same` differ in a setting that says what the default says. `slower` is a copy of the reference
connectors whose tasks sleep after each put for a twentieth of the time that it took. The blocks of the run are cut into
groups, of which each is compared as if it were a run.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import yaml

from sinkbench.runs.arms import compare_arms
from sinkbench.runs.compare import FIGURES, RATE
from sinkbench.runs.reader import StoredRun, load_run
from sinkbench.stack.tools import find_java

CHECKOUT = Path(__file__).resolve().parent.parent
SINKBENCH = CHECKOUT / ".venv" / "bin" / "sinkbench"
DIST, SOURCES = CHECKOUT / "var" / "dist", CHECKOUT / "connect" / "reference" / "src" / "main" / "java"
BLOCKS, GROUPS = 60, (6, 10, 20, 30)
ARMS = ("same", "slower")
FOUND = ("faster", "slower", "less CPU", "more CPU", "smaller", "larger")


def slower_plugin(folder: Path) -> Path:
    """Compiles the reference connectors with the pause, as version 2, beside the libraries that they need."""
    plugin, sources, classes = folder / "sinkbench-reference-2", folder / "sources", folder / "classes"
    shutil.copytree(DIST / "plugins" / "sinkbench-reference", plugin)
    shutil.copytree(SOURCES, sources)
    for name, old, new in (
        ("ReferenceConnector", 'VERSION = "1"', 'VERSION = "2"'),
        (
            "ReferenceTask",
            "refused = new LinkedHashMap<>();\n",
            "refused = new LinkedHashMap<>();\n        long began = System.nanoTime();\n",
        ),
        (
            "ReferenceTask",
            "stored.clear();\n",
            "stored.clear();\n"
            "            java.util.concurrent.locks.LockSupport.parkNanos((System.nanoTime() - began) / 20);\n",
        ),
    ):
        file = sources / "sinkbench" / "reference" / f"{name}.java"
        text = file.read_text()
        if text.count(old) != 1:
            raise SystemExit(f"{file.name}: {old!r} is not there once")
        file.write_text(text.replace(old, new))
    jars = [*plugin.glob("*.jar"), *(DIST / "kafka" / "libs").glob("*.jar")]
    bin_folder, jar = find_java() / "bin", next(plugin.glob("sinkbench-reference-*.jar"))
    path = os.pathsep.join(map(str, jars))
    command = [bin_folder / "javac", "--release", "17", "-nowarn", "-cp", path, "-d", classes]
    subprocess.run([*command, *sources.rglob("*.java")], check=True)
    subprocess.run([bin_folder / "jar", "uf", jar, "-C", classes, "."], check=True)
    return plugin


def race(blocks: int) -> Path:
    """Returns the folder of a new run with one worker and one task, which waits for each put."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        version = "connector.plugin.version"
        content = {
            "pipelines": ["elasticsearch/reference-bulk", "postgres/reference-copy"],
            "arms": {
                "one": {"overrides": {version: "1"}},
                "same": {"overrides": {version: "1", "batch.records": "5000"}},
                "slower": {"plugin": str(slower_plugin(folder)), "overrides": {version: "2"}},
            },
            "trials": blocks,
            "drain": {"window_seconds": 4, "warm_up_seconds": 20},
        }
        plan = folder / "equal-arms.yaml"
        plan.write_text(yaml.safe_dump(content))
        command = [str(SINKBENCH), "race", str(plan)]
        done = subprocess.run(command, env={**os.environ, "SINKBENCH_WORKERS": "1"}, cwd=CHECKOUT, check=False)
    if done.returncode:
        raise SystemExit(f"the race ended with exit code {done.returncode}")
    return (CHECKOUT / "results" / "latest").resolve()


def groups(run: StoredRun, size: int) -> Iterator[StoredRun]:
    """The run's blocks in groups of so many, each as a run of its own."""
    blocks = sorted({trial.block for trial in run.trials if not trial.pilot})
    for first in range(0, len(blocks) - size + 1, size):
        own = blocks[first : first + size]
        yield replace(run, trials=[trial for trial in run.trials if trial.block in own])


def report(run: StoredRun) -> Iterator[str]:
    """Lines: what the whole run says, then for each size of a group how often a difference was found."""
    seconds = statistics.median(trial.seconds for trial in run.trials if not trial.pilot)
    for arm, found in zip(ARMS, compare_arms(run), strict=True):
        for cell in found.by[RATE]:
            ends = "" if cell.interval is None else f" ({cell.interval.low:.3f}-{cell.interval.high:.3f})"
            yield f"{cell.name}, {arm}: {cell.ratio or 0:.3f} times the records/s{ends}, {cell.verdict}"
    for size in GROUPS:
        minutes = 4 * size * seconds / 60
        for arm, compared in zip(ARMS, zip(*map(compare_arms, groups(run, size)), strict=True), strict=True):
            for figure in FIGURES:
                cells = [cell for found in compared for cell in found.by.get(figure, ()) if cell.ratio]
                verdicts = Counter(cell.verdict for cell in cells)
                claimed = sum(verdicts[verdict] for verdict in FOUND)
                told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
                if cells:
                    yield f"{size} blocks ({minutes:.0f} min), {arm}, {figure}: {claimed} of {len(cells)} ({told})"


def main() -> None:
    folder = CHECKOUT / "results" / sys.argv[1] if len(sys.argv) > 1 else race(BLOCKS)
    for line in report(load_run(folder)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
