"""One trial in this process, of few records, for what a whole race would show too late or not for certain."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from sinkbench.bench import Bench, Names
from sinkbench.cells import expand
from sinkbench.plan import load_plan
from sinkbench.probes import Sample
from sinkbench.results import TrialRecord
from sinkbench.settings import CHECKOUT
from sinkbench.stack.local import LocalStack
from sinkbench.trial import drain_trial


class Silent:
    """Is told what goes on, and keeps it to itself."""

    def phase(self, text: str) -> None:
        return

    def progress(self, done: int, total: int) -> None:
        return

    def sample(self, sample: Sample) -> None:
        return


def one_trial(
    stack: LocalStack, folder: Path, text: str, records: int, *, cell: int = 0, observer: Silent | None = None
) -> tuple[TrialRecord, list[Sample]]:
    """Takes a drain trial of the plan's cell of that number, without a pilot, and removes what it has made."""
    (folder / "mine.yaml").write_text(text)
    plan = load_plan(folder / "mine.yaml", CHECKOUT / "connectors").seeded()
    names, chosen = Names.of("5eeded_001"), expand(plan, stack.workers)[cell]
    with closing(Bench(stack, plan, CHECKOUT)) as bench:
        try:
            return drain_trial(bench, chosen, names, records, 1, observer or Silent())
        finally:
            bench.clean(chosen, names)
