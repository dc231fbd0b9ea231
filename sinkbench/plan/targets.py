"""The files that a plan names: queries, and targets, which define an index or table."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from loadgen.reading import read_bytes
from sinkbench.errors import PlanError
from sinkbench.plan.plan import Plan


def check_targets(plan: Plan, endings: Mapping[str, str | None]) -> None:
    """Raises PlanError if a sink takes no target, or none with such a name; `endings` are file name endings by sink."""
    for index, entry in enumerate(plan.pipelines):
        ending = endings.get(entry.sink)
        if entry.target is None or (ending is not None and entry.target.endswith(ending)):
            continue
        where = plan.where("pipelines", index, "target")
        fix = "leave it out" if ending is None else f"name a file that ends in {ending}"
        what = "takes no target" if ending is None else f"takes no target {entry.target}"
        raise PlanError(f"{where}: the sink {entry.sink} {what}; {fix}")


def file_hashes(plan: Plan, checkout: Path) -> dict[str, str]:
    """Returns the SHA-256 of each target and query file of a plan as a hex digest. Raises PlanError."""
    names = [entry.target for entry in plan.pipelines if entry.target is not None]
    if plan.queries is not None:
        names += [f"{plan.queries}/{file.name}" for file in sorted((checkout / plan.queries).glob("*.yaml"))]
    found = {}
    for name in dict.fromkeys(names):
        try:
            found[name] = hashlib.sha256(read_bytes(checkout / name, PlanError)).hexdigest()
        except FileNotFoundError:
            raise PlanError(f"{name}: there is no such file any more; restore it, or take it out of the plan") from None
    return found
