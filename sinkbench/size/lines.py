"""Sizes as at most 40 lines of at most 100 columns, and as plain values."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sinkbench.analysis.words import NOT_MEASURED, few_of, in_time, milliseconds, percent, significant, whole
from sinkbench.size.model import TWICE, Figure
from sinkbench.size.sizes import Asked, Size
from sinkbench.tables.text import cut

WIDTH, MOST_LINES = 100, 40
_HEADS = ("", "tasks", "workers", "conns", "cores", "GB/day", "MB/s")
_TITLES = {"qualifies": "Qualify, fewest cores first", "not decided": "Not decided", "fails": "Do not qualify"}
_LEGEND = "~ beyond what was measured, ! beyond twice; (low-high): 95 %, of fewer than 5 trials lowest-highest."
_HOW_P99 = "To decide p99: race a plan such as plans/sustain.yaml with these rates and tasks."


def lines(found: Sequence[Size], asked: Asked, runs: Sequence[str]) -> list[str]:
    """What is asked, a line a pipeline by its state, details of the first ones, and the assumptions."""
    head = [*_wrapped(requirement(found, asked), ""), *_wrapped(f"From {few_of(runs, 4)}", ""), ""]
    open_p99 = any(text.startswith("p99") for each in found if not each.fails for text in each.unknown)
    workers = f"{asked.cores_per_worker:g} cores a worker, {asked.may_fail} may fail"
    assumed = f"Assumed: {workers}, partitions >= tasks, a record as measured; >=: of a drain."
    end = [*([_HOW_P99] if open_p99 else []), "", _LEGEND, assumed]
    states = {state: [each for each in found if each.state == state] for state in _TITLES}
    # A line stays for what is left out.
    room = MOST_LINES - len(head) - len(end) - sum(map(bool, states.values())) - 1
    spare = room - len(found)
    sized = [each for each in found[:room] if not each.fails and each.figures]
    widths = [max(map(len, column)) for column in zip(_HEADS, *map(_row, sized), strict=True)]
    widths[0] = max(widths[0], *map(len, _TITLES.values()))
    body, left = [], ""
    for state, own in states.items():
        heads = _HEADS[1:] if any(each in sized for each in own) else ()
        body += [_aligned((_TITLES[state], *heads), widths)] if own else []
        for each in own:
            if each not in sized:
                reasons = cut(f"  {each.measured.name}: {'; '.join(each.fails or each.unknown)}", WIDTH)
                body += [reasons] if each in found[:room] else []
                continue
            details = _details(each)
            if len(details) > spare:
                # None below has any, so that those have them that need fewest cores.
                details, spare, left = [], 0, "all details"
            spare -= len(details)
            body += [_aligned(_row(each), widths), *details]
    left = f"and {len(found) - room} more" if len(found) > room else left
    return [*head, *body, *([f"{left}: --json"] if left else []), *end]


def requirement(found: Sequence[Size], asked: Asked) -> str:
    """What is asked, with the size of the measured records if that is what is meant."""
    known = {each.measured.record_bytes if asked.record_bytes is None else asked.record_bytes for each in found}
    size = f" of {whole(*known)} bytes" if len(known) == 1 and None not in known else ""
    p99 = "" if asked.p99_ms is None else f", p99 <= {milliseconds(asked.p99_ms)} ms"
    queries = f", {asked.queries} queries by an index" if asked.queries else ""
    return f"Asked: {whole(asked.rate)} records/s{size}{p99}{queries}, {percent(asked.headroom)} headroom"


def plain(found: Sequence[Size], asked: Asked, runs: Sequence[str]) -> dict[str, Any]:
    """For JSON; an infinite bound is None."""
    return {
        "asked": asdict(asked),
        "runs": list(runs),
        "pipelines": [
            {
                "pipeline": each.measured.name,
                "state": each.state,
                "fails": each.fails,
                "not_decided": each.unknown,
                "record_bytes": each.measured.record_bytes,
                "runs": each.measured.runs,
                "curve": each.curve or None,
                "figures": {name: _plain(value) for name, value in each.figures.items()},
                "binds_first": each.binds or None,
                "cores_of_loads": each.loaded,
            }
            for each in found
        ],
    }


def _plain(value: Figure) -> dict[str, Any]:
    finite = {name: number if math.isfinite(number) else None for name, number in asdict(value).items()}
    return {**finite, "basis": value.basis}


def _row(each: Size) -> tuple[str, ...]:
    names = ("tasks", "workers", "connections", "cores", "disk_gb_a_day", "network_mb")
    texts = {name: _short(each.figures.get(name), ranged=name == "cores") for name in names}
    texts["cores"] = texts["cores"] if each.loaded or "cores" not in each.figures else f">={texts['cores']}"
    if (servers := each.figures.get("server_connections")) is not None:
        texts["connections"] += f" -> {_short(servers)}"
    return f"  {each.measured.name}", *texts.values()


def _details(each: Size) -> list[str]:
    """Why it is not decided; the cores of each service, p99 and backlog; what is measured, and what is exhausted."""
    figures, tasks, heap = each.figures, each.figures["tasks"], each.figures.get("heap_mb")
    shares = {name.removeprefix("cores."): value.value for name, value in figures.items() if name.startswith("cores.")}
    services = ", ".join(f"{name} {value:.2f}" for name, value in sorted(shares.items(), key=lambda part: -part[1]))
    behind, p99, kept = figures["catch_up_seconds"], figures.get("p99_ms"), figures.get("disk_gb_kept")
    soonest, likely, latest = (
        in_time(each) if math.isfinite(each) else "never" for each in (behind.low, behind.value, behind.high)
    )
    most = whole(tasks.high) if math.isfinite(tasks.high) else "not reached"
    ends = f" ({whole(tasks.low)}-{most})" if tasks.low < tasks.high else ""
    takes = [
        services,
        f"heap {whole(heap.value)} MB a worker" if heap else "",
        f"p99 {milliseconds(p99.value)} ms" if p99 else "",
        f"{whole(kept.value)} GB kept" if kept else "",
        f"1 h down: {likely} ({soonest}-{latest})",
    ]
    far = [
        f"tasks {_far(tasks)}{ends}",
        f"cores, disk, MB/s {_far(figures.get('cores'))}",
        f"first limit: {each.binds}" if each.binds else "",
    ]
    said = [*each.unknown, *("; ".join(filter(None, texts)) for texts in (takes, far))]
    return [line for text in said for line in _wrapped(text, "    ")[:2]]


def _far(value: Figure | None) -> str:
    if value is None:
        return "not measured"
    return value.basis if value.times <= 1 else f"extrapolated {significant(value.times, 2)}x"


def _short(value: Figure | None, *, ranged: bool = False) -> str:
    if value is None:
        return NOT_MEASURED
    mark = "" if value.times <= 1 else "~" if value.times <= TWICE else "!"
    if not ranged:
        return f"{significant(value.value, 2) if value.value < 10 else whole(value.value)}{mark}"
    digits = 2 if value.high < 10 else 1
    ends = f" ({value.low:.{digits}f}-{value.high:.{digits}f})" if value.low < value.high else ""
    return f"{value.value:.{digits}f}{ends}{mark}"


def _aligned(texts: Sequence[str], widths: Sequence[int]) -> str:
    longest = min(widths[0], WIDTH - sum(widths[1:]) - 2 * len(widths[1:]))
    first, half = texts[0], (longest - 3) // 2
    # Names often differ at their ends.
    first = first if len(first) <= longest else f"{first[:half]}...{first[-half:]}"
    return "  ".join([first.ljust(longest), *map(str.rjust, texts[1:], widths[1:])]).rstrip()


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False)
