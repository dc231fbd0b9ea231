"""The selftest's figures: false claims for a pipeline compared with itself, and the overhead of probes.

Noise: A and B are the same pipeline, so 95 % allow about one false claim in twenty. Comparisons share blocks, so the
binomial interval is narrower than that of separate runs. Overhead: with and without probes, by the sink's own times."""

import math
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from sinkbench.analysis.intervals import CONFIDENCE, FEWEST_BLOCKS, interval_of, ratio_by_block, seed_of
from sinkbench.errors import PlanError
from sinkbench.plan.plan import Plan, PlanDrain
from sinkbench.results import Noise, Overhead, TrialRecord

NOISE, OVERHEAD = "noise", "overhead"
LABELS = ("A", "B")
PROBES = {"probes on": True, "probes off": False}
COMPARISONS = 200
WINDOW_SECONDS = 8.0
WARM_UP_SECONDS = 30.0


def noise_plan(pipeline: str, minutes: float) -> Plan:
    """A plan that compares a pipeline with itself, with more blocks than fit into these minutes."""
    return _pairs(NOISE, minutes, *({"pipeline": pipeline, "label": label} for label in LABELS))


def overhead_plan(pipeline: str, minutes: float, stamping: Collection[str]) -> Plan:
    """A plan that compares one pipeline with and without probes, with more blocks than fit into these minutes.
    PlanError if its sink is not among the `stamping`, which store insertion times: a rate without probes needs them."""
    if pipeline.split("/")[0] not in stamping:
        raise PlanError(
            f"{pipeline}: without probes only a sink that keeps the time of every insertion tells the rate"
            f" ({', '.join(stamping)}); take a pipeline of such a one"
        )
    entries = ({"pipeline": pipeline, "label": label, "probes": probes} for label, probes in PROBES.items())
    return _pairs(OVERHEAD, minutes, *entries)


def is_selftest(plan: Plan) -> bool:
    labels = tuple(entry.shown_name for entry in plan.pipelines)
    return (plan.name, labels) in ((NOISE, LABELS), (OVERHEAD, tuple(PROBES)))


def _pairs(name: str, minutes: float, *entries: Mapping[str, object]) -> Plan:
    return Plan.model_validate(
        {
            "name": name,
            "pipelines": entries,
            "trials": min(10_000, max(FEWEST_BLOCKS, math.ceil(minutes * 60 / (len(entries) * WINDOW_SECONDS)))),
            "drain": PlanDrain(window_seconds=WINDOW_SECONDS, warm_up_seconds=WARM_UP_SECONDS),
        }
    )


def noise_of(first: Mapping[int, float], second: Mapping[int, float]) -> Noise | None:
    """How many of 200 comparisons claimed a difference, and the smallest difference that the whole run would show;
    from valid rates by block. None for fewer than 5 shared blocks, or if a rate is 0. The result is deterministic."""
    whole = ratio_by_block(LABELS[0], second, first)
    if whole is None or whole.interval is None:
        return None
    shared = sorted(first.keys() & second.keys())
    draw = np.random.default_rng(seed_of([rate for block in shared for rate in (first[block], second[block])]))
    # All blocks would give nearly the same comparison each time.
    size = max(FEWEST_BLOCKS, len(shared) // 2)
    claimed = 0
    for _ in range(COMPARISONS):
        picked = draw.choice(shared, size, replace=False).tolist()
        swapped = dict(zip(picked, draw.random(size) < 0.5, strict=True))
        one = {block: second[block] if swapped[block] else first[block] for block in picked}
        other = {block: first[block] if swapped[block] else second[block] for block in picked}
        found = ratio_by_block(LABELS[0], one, other)
        interval = None if found is None else found.interval
        claimed += interval is not None and not interval.low <= 1 <= interval.high
    from scipy import stats

    # The exact binomial interval (Clopper and Pearson 1934).
    share = stats.binomtest(claimed, COMPARISONS).proportion_ci(CONFIDENCE, method="exact")
    half_width = math.log(whole.interval.high / whole.interval.low) / 2
    return Noise(
        blocks=len(shared),
        comparisons=COMPARISONS,
        claimed=claimed,
        share=interval_of(float(share.low), float(share.high), "exact binomial", size),
        ratio=whole,
        smallest_difference_percent=100 * math.expm1(half_width),
    )


def noise_lines(noise: Noise, pipeline: str) -> list[str]:
    share, whole = noise.share, noise.ratio.interval
    claimed = 100 * noise.claimed / noise.comparisons
    lines = [
        f"{pipeline} against itself, {noise.blocks} blocks: {noise.claimed} of {noise.comparisons} comparisons claimed"
        f" a difference, {claimed:.1f} % ({100 * share.low:.1f} to {100 * share.high:.1f} %;"
        f" {100 * (1 - CONFIDENCE):.0f} % are due to chance).",
        f"The smallest difference found in as long a run: about {noise.smallest_difference_percent:.1f} %.",
    ]
    if noise.by_cpu is not None:
        lines.append(
            f"By CPU time for the same records: {noise.by_cpu.claimed} of {noise.by_cpu.comparisons} claimed one; the"
            f" smallest found: about {noise.by_cpu.smallest_difference_percent:.1f} %."
        )
    if whole is not None and not whole.low <= 1 <= whole.high:
        lines.append(
            f"All blocks together claim one, B to A {noise.ratio.estimate:.3f} ({whole.low:.3f} to {whole.high:.3f}):"
            " chance, or something that makes their trials differ; run it again."
        )
    return lines


def overhead_of(trials: Iterable[TrialRecord]) -> Overhead | None:
    """The overhead that such a run shows; None for fewer than 5 blocks in which both are valid."""
    on, off = PROBES
    rates: dict[str, dict[int, float]] = {on: {}, off: {}}
    for trial in trials:
        if not (trial.pilot or trial.invalid or trial.warm is False) and trial.stamped_records_per_second is not None:
            rates[trial.label][trial.block] = trial.stamped_records_per_second
    ratio = ratio_by_block(off, rates[on], rates[off])
    if ratio is None or ratio.interval is None:
        return None
    found = ratio.interval
    lost = found.model_copy(update={"low": 100 * (1 - found.high), "high": 100 * (1 - found.low)})
    return Overhead(blocks=ratio.blocks, ratio=ratio, lost_percent=100 * (1 - ratio.estimate), interval_percent=lost)


def overhead_lines(overhead: Overhead, pipeline: str) -> list[str]:
    found = overhead.interval_percent
    lines = [
        f"{pipeline}, {overhead.blocks} blocks: with probes {overhead.lost_percent:.1f} % fewer records/s than without"
        f" ({found.low:.1f} to {found.high:.1f} %), by the sink's own times of insertion."
    ]
    if found.low <= 0 <= found.high:
        lines.append("The interval contains 0: no monitoring overhead is seen; more --minutes would see a smaller one.")
    elif found.low > 0:
        lines.append("Monitoring costs something here: raise probe_interval_ms if that is too much.")
    else:
        lines.append(
            "With probes it was faster, which monitoring cannot cause: chance, or a busy machine; run it again."
        )
    return lines
