"""How many nodes have a record, in memory or on disk, when it counts as stored."""

from collections.abc import Sequence

from sinkbench.analysis.rates import median_known
from sinkbench.analysis.words import NOT_MEASURED
from sinkbench.metrics.metric import Column, Fields, Metric, Seen, column, count, find, number, rounded, words
from sinkbench.metrics.taken import Taken
from sinkbench.results import CellSummary, Durability, TrialRecord

DURABILITY = "durability"
STANDBY_LAG = {"standby_lag_bytes": "bytes", "standby_lag_ms": "ms"}
"""Signs of samples and figures, with their units."""


def durability_in_words(cell: CellSummary) -> str:
    """As `2 nodes, disk`; `not known` if the sink does not report it."""
    return find(cell, "durability.text") or "not known"


def alike(cells: Sequence[CellSummary]) -> bool | None:
    """Whether cells are equally durable; None if that is known of only some of them. Without any data they are."""
    found = [None if cell.durability is None or not cell.durability.text else cell.durability for cell in cells]
    if None in found:
        return None if any(found) else True
    return len({_promised(each) for each in found if each is not None}) < 2


def durability_notes(trials: Sequence[TrialRecord]) -> list[str]:
    """A note if the trials of a cell were not equally durable."""
    texts = list(dict.fromkeys(each.text or "not known" for each in _known(trials)))
    return [f"its trials were not equally durable: {'; '.join(texts)}"] if len(texts) > 1 else []


def _of_cell(taken: Taken) -> Fields:
    found = _known(taken.valid or taken.trials)
    return {"durability": found[0] if len({_promised(each) for each in found}) == 1 else None}


def _known(trials: Sequence[TrialRecord]) -> list[Durability]:
    return [trial.durability for trial in trials if trial.durability is not None]


def _promised(found: Durability) -> tuple[object, ...]:
    return found.text, found.nodes, found.on_disk, found.kafka


def _standby_lag(seen: Seen) -> Fields:
    found = {sign: rounded(median_known(each.signs.get(sign) for each in seen.samples), 1) for sign in STANDBY_LAG}
    return {"figures": {sign: value for sign, value in found.items() if value is not None}}


def _lag_of_cell(taken: Taken) -> Fields:
    found = {sign: taken.spread(trial.figures.get(sign) for trial in taken.used) for sign in STANDBY_LAG}
    return {"figures": {sign: spread for sign, spread in found.items() if spread is not None}}


METRICS = (
    Metric(
        "Durability",
        of_cell=_of_cell,
        columns=[
            column(DURABILITY, 10, "tasks", "tasks", str),
            Column(DURABILITY, 20, "stored on", lambda cell, _: durability_in_words(cell), "words"),
            Column(DURABILITY, 30, "in Kafka", lambda cell, _: find(cell, "durability.kafka") or NOT_MEASURED, "words"),
        ],
        place=10,
        exports=[
            words("durability", "durability.text"),
            count("durability_nodes", "durability.nodes"),
            count("durability_nodes_on_disk", "durability.on_disk"),
            words("durability_in_kafka", "durability.kafka"),
        ],
    ),
    Metric(
        "Standby lag",
        of_trial=_standby_lag,
        of_cell=_lag_of_cell,
        columns=[
            column(DURABILITY, place, f"standby\nbehind by\n{unit}", f"figures.{sign}.median", always=False)
            for place, (sign, unit) in enumerate(STANDBY_LAG.items(), 40)
        ],
        place=10,
        exports=[number(sign, f"figures.{sign}.median") for sign in STANDBY_LAG],
    ),
)
