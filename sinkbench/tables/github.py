"""A comparison of two runs as a comment on a pull request: one table, and what stands behind it folded away.

The first line is the same for every run of a plan, so that a bot finds its comment and replaces it."""

from collections import Counter
from collections.abc import Iterator, Sequence

from sinkbench.analysis.words import NOT_MEASURED
from sinkbench.runs.compare import CPU, RATE, Compared, Comparison, Verdict
from sinkbench.runs.reader import StoredRun
from sinkbench.summary.thresholds import outcomes
from sinkbench.tables.comparison import compared
from sinkbench.tables.text import cut, escaped, markdown

# The first of them that was compared has the verdicts of the table.
_FIGURES = (RATE, CPU, "p99 ms")
_WORSE: set[Verdict] = {"slower", "more CPU", "larger", "longer"}


def github(comparison: Comparison, failures: Sequence[str] = ()) -> str:
    """The comment in Markdown; `failures` are what the limits of the command line found."""
    figures = [name for name in _FIGURES if any(cell.ratio for cell in comparison.by.get(name, ()))] or [RATE]
    main = figures[0]
    counts = Counter(cell.verdict for cell in comparison.by[main])
    verdicts = sorted(counts, key=lambda verdict: (verdict not in _WORSE, verdict))
    found = ", ".join(f"{counts[verdict]} {verdict}" for verdict in verdicts) or "no cells"
    heads = ["cell", main, "95 % interval", *figures[1:], "thresholds"]
    table = [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *_rows(comparison, figures))]
    failed = [f"- **{escaped(line)}**" for line in failures]
    head = [_head(comparison.b, f"{main}: {found}"), *failed, *([""] if failed else [])]
    details = "\n<details><summary>Runs, differences, all figures, remarks</summary>\n"
    return "\n".join([*head, *table, details, markdown(compared(comparison)), "</details>\n"])


def not_compared(run: StoredRun, why: str) -> str:
    return f"{_head(run, 'not compared')}\n{escaped(why)}\n"


def _head(run: StoredRun, found: str) -> str:
    plan = escaped(run.summary.plan.name)
    return f"<!-- sinkbench {plan} -->\n**sinkbench, plan {plan}.** {escaped(found)}\n"


def _rows(comparison: Comparison, figures: Sequence[str]) -> Iterator[list[str]]:
    failed = {cell.cell: cell.verdict for cell in comparison.b.summary.cells if not cell.passed}
    asked = outcomes(comparison.b.summary)
    for main, *others in zip(*(comparison.by[name] for name in figures), strict=True):
        fault, interval = failed.get(main.name), main.interval
        held = [each.passed for each in asked if each.cell == main.name]
        count = f"{held.count(True)} of {len(held)}" if held else NOT_MEASURED
        yield [
            escaped(main.name),
            _found(main) if fault is None else f"**{escaped(cut(fault, 60))}**",
            NOT_MEASURED if interval is None else f"{_change(interval.low)} to {_change(interval.high)}",
            *map(_found, others),
            f"**{count}**" if False in held else count,
        ]


def _found(cell: Compared) -> str:
    verdict = f"**{cell.verdict}**" if cell.verdict in _WORSE else cell.verdict
    return verdict if cell.ratio is None else f"{_change(cell.ratio)}, {verdict}"


def _change(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"
