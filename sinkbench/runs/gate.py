"""Whether a compared run passes: the options --fail-if-slower and --fail-if-cpu-higher."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sinkbench.errors import ResultsError
from sinkbench.runs.compare import CPU, TOO_FEW, Compared, Comparison


@dataclass(frozen=True)
class Gate:
    """Why B fails; which cells are `inconclusive`, for too few trials or a disturbance; and `remarks` on the rest."""

    failures: list[str]
    remarks: list[str]
    inconclusive: list[str] = field(default_factory=list)


def percent_of(text: str, option: str) -> float:
    """The percentage in `5%`, `5` or `2.5 %`; ResultsError, naming the option, if not from 0 to below 100."""
    try:
        percent = float(text.strip().removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent < 100:
        raise ResultsError(f"{option} {text}: is not a share from 0 % to below 100 %; give one as 5%")
    return percent


def gate(comparison: Comparison, slower: float | None, more_cpu: float | None = None) -> Gate:
    """Whether run B passes if no cell may be N percent slower, or use N percent more CPU time, than in run A; None: no
    limit.

    It fails if a cell significantly exceeds N, passed in A but not in B, or if no cell is comparable. It is
    inconclusive if all have too few trials, or a disturbance can explain a slower cell. Remarks list cells whose trials
    could not have shown such a difference, and those not compared."""
    broken = [cell.name for cell in comparison.cells if cell.broken]
    sides = ((comparison.cells, "slower", slower), (comparison.by.get(CPU, []), "more CPU", more_cpu))
    found = [_gate(cells, word, percent) for cells, word, percent in sides if percent is not None]
    names = ("failures", "remarks", "inconclusive")
    failures, remarks, inconclusive = ([line for each in found for line in getattr(each, name)] for name in names)
    return Gate([*failures, *_lines({"passed in run A and not in run B": broken})], remarks, inconclusive)


def _gate(cells: Sequence[Compared], word: str, percent: float) -> Gate:
    def beyond(figures: Mapping[str, float]) -> list[str]:
        return [f"{name} ({each:.1f} %)" for name, each in figures.items() if each > percent]

    less = {cell.name: 100 * (1 - cell.ratio) for cell in cells if cell.ratio is not None}
    worse = beyond({cell.name: abs(less.get(cell.name, 0)) for cell in cells if cell.verdict == word})
    excused = beyond({cell.name: less.get(cell.name, 0) for cell in cells if cell.verdict == "cannot tell"})
    told = [cell for cell in cells if cell.verdict not in ("cannot tell", TOO_FEW, "not comparable")]
    few = [cell.name for cell in cells if cell.verdict == TOO_FEW]
    unseen = beyond({cell.name: cell.smallest_percent or 0 for cell in told})
    # Cells with an explanation are listed separately.
    untold = [cell for cell in cells if cell not in told and cell.verdict != "cannot tell"]
    inconclusive = [cell.name for cell in untold if not cell.broken]
    disturbed = f"cannot tell: {word} by more than {percent:g} %, which a disturbance can explain; run it again"
    failures = _lines({f"{word} by more than {percent:g} %": worse})
    by = "rate" if word == "slower" else "CPU time"
    if not told and not excused and not few:
        failures.append(f"nothing was compared by {by}: no cell is comparable")
    may_be_worse = f"{word} by {percent:g} % may go unseen; the smallest difference that shows"
    remarks = _lines({may_be_worse: unseen, "not compared, the table says why": inconclusive if told else []})
    too_few = f"too few trials to compare by {by}; race with --trials 5 or more"
    return Gate(failures, remarks, _lines({disturbed: excused, too_few: [] if told else few}))


def _lines(cells: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"{what}: {', '.join(those)}" for what, those in cells.items() if those]
