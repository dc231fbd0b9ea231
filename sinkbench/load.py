"""Fills a trial's topic: runs loadgen as a process of its own, so that its CPU time is not the controller's."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

from sinkbench.errors import TrialFailed
from sinkbench.plan import Load

__all__ = ["preload"]

Progress = Callable[[int], None]


def preload(bootstrap: str, topic: str, run: str, records: int, load: Load, progress: Progress) -> dict[str, Any]:
    """Makes the topic and produces `records` records into it, as fast as the broker takes them.

    Args:
        bootstrap: Kafka's address.
        topic: the topic to make.
        run: what the records bear as `bench.run`.
        records: how many.
        load: the plan's load.
        progress: is called about once a second with the number of records acknowledged so far.

    Returns:
        loadgen's summary.

    Raises:
        TrialFailed: loadgen could not do it, or a record was not acknowledged.
    """
    command = [
        *(sys.executable, "-m", "loadgen", "run", "--bootstrap", bootstrap, "--topic", topic, "--run", run),
        *("--count", str(records), "--keys", str(load.keys), "--record-bytes", str(load.record_bytes)),
        *("--acks", load.acks, "--compression", load.compression, "--linger-ms", str(load.linger_ms)),
        *("--batch-bytes", str(load.batch_bytes), "--partitions", str(load.partitions)),
        *("--replication", str(load.replication), "--progress-json"),
    ]
    # In a session of its own: a Ctrl-C is for the controller, which then ends loadgen itself.
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    if process.stdout is None or process.stderr is None:
        raise RuntimeError("a process with pipes has no pipes")
    errors: list[str] = []
    reader = threading.Thread(target=_follow, args=(process.stderr, progress, errors), daemon=True)
    reader.start()
    try:
        output = process.stdout.read()
        code = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    finally:
        reader.join(timeout=5)
        process.stdout.close()
        process.stderr.close()
    if code == 0:
        return dict(json.loads(output))
    try:
        summary = json.loads(output)
        reason = f"{summary['failed']:,} of {summary['sent']:,} records were not acknowledged: {summary['errors']}"
    except (ValueError, KeyError):
        reason = errors[-1] if errors else f"loadgen ended with exit code {code}"
    raise TrialFailed(f"the topic could not be loaded: {reason}")


def _follow(stream: IO[str], progress: Progress, errors: list[str]) -> None:
    for line in stream:
        try:
            progress(int(json.loads(line)["acknowledged"]))
        except (ValueError, KeyError, TypeError):
            errors.append(line.strip())
