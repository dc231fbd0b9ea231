"""The command `plans`, and plans by name."""

import re
import textwrap
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from sinkbench.cli.options import commands, write
from sinkbench.errors import PlanError
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import CapacityPlan, Plan, kafka_loads, load_plan
from sinkbench.plan.sizing import USUAL_SEARCH_STEPS, StepsLeft, kafka_more_seconds, seconds_left
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.suggest import did_you_mean

app = commands()
PLANS = CHECKOUT / "plans"
_NEEDS = {
    r"SINKBENCH_TOPOLOGY=([a-z]+)": r"topology \1",
    r"(\d+ GB) of free disk": r"\1 of disk",
    r"PgBouncer 1\.21": "PgBouncer 1.21",
    r"\bwith Go\b": "Go",
}
_QUESTION = re.compile(r".+?[.?!](?=\s|$)")


@app.command()
def plans() -> None:
    """`sinkbench race NAME` runs one; a path to a plan of your own works, too."""
    for path in sorted(PLANS.glob("*.yaml")):
        lines = path.read_text(encoding="utf-8").splitlines()
        # The comment that it begins with.
        comment = " ".join(line.lstrip("# ") for line in takewhile(lambda line: line.startswith("#"), lines))
        needs = [re.sub(need, text, found[0]) for need, text in _NEEDS.items() if (found := re.search(need, comment))]
        plan = read_plan(path.stem)
        write(f"{path.stem}: {duration(plan, load_settings().workers)}{''.join(f', needs {each}' for each in needs)}\n")
        question = found[0] if (found := _QUESTION.match(comment)) else comment
        write("".join(f"    {line}\n" for line in textwrap.wrap(question, 90)))


def read_plan(name: str | Path, pipelines: Sequence[str] = ()) -> Plan:
    """The plan of that file, or name in plans/, with these pipelines if any are given; PlanError, with all names."""
    path = Path(name)
    if not path.exists() and path.suffix == "" and len(path.parts) == 1:
        path = PLANS / f"{name}.yaml"
        if not path.exists():
            known = [each.stem for each in sorted(PLANS.glob("*.yaml"))]
            hint = did_you_mean(str(name), known).partition(";")[2].strip()
            raise PlanError(f"{name}: is no plan; {f'{hint} ' if 'mean' in hint else ''}plans: {', '.join(known)}")
    return load_plan(path, CHECKOUT / "connectors", pipelines)


def seconds_of(plan: Plan, workers: int) -> float:
    """About how long a race takes on a stack that is up."""
    cells = expand(plan, workers)
    places = len({cell.place for cell in cells})
    searches = USUAL_SEARCH_STEPS * places if isinstance(plan, CapacityPlan) else 0
    trials = searches + plan.most_blocks * len(cells)
    loads = kafka_loads(plan)
    in_blocks = len(loads) * (1 + plan.most_blocks)
    more = sum(kafka_more_seconds(each, plan.most_blocks) for each in loads)
    warm_up = places * plan.drain.warm_up_seconds
    return more + seconds_left(plan, StepsLeft(places, 2 * plan.limits, trials, in_blocks, warm_up), ())


def duration(plan: Plan, workers: int) -> str:
    """How long it takes, as `about 9 min`."""
    at_most = "at most" if plan.most_blocks > plan.trials else "about"
    return f"{at_most} {max(1, round(seconds_of(plan, workers) / 60))} min"
