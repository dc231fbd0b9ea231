"""Target files: what a pipeline's index or table is like, where a plan names one instead of the sink's own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from loadgen.reading import read_bytes
from sinkbench.errors import PlanError
from sinkbench.plan.plan import Plan

__all__ = ["check_targets", "target_hashes"]


def check_targets(plan: Plan, endings: Mapping[str, str | None]) -> None:
    """Makes sure that each sink can take the targets that the plan names for it.

    Args:
        endings: how the names of a sink's target files end, such as `.sql`, by its name; None: it takes none.

    Raises:
        PlanError: a sink takes no target, or none with such a name.
    """
    for index, entry in enumerate(plan.pipelines):
        ending = endings.get(entry.sink)
        if entry.target is None or (ending is not None and entry.target.endswith(ending)):
            continue
        where = plan.where("pipelines", index, "target")
        mend = "leave it out" if ending is None else f"name a file that ends in {ending}"
        what = "takes no target" if ending is None else f"takes no target {entry.target}"
        raise PlanError(f"{where}: the sink {entry.sink} {what}; {mend}")


def target_hashes(plan: Plan, checkout: Path) -> dict[str, str]:
    """SHA-256 of each target file that a plan names, as a hex digest, by the file.

    Raises PlanError if one cannot be read.
    """
    found = {}
    for name in dict.fromkeys(entry.target for entry in plan.pipelines if entry.target is not None):
        try:
            found[name] = hashlib.sha256(read_bytes(checkout / name, PlanError)).hexdigest()
        except FileNotFoundError:
            raise PlanError(f"{name}: there is no such target file; restore it, or leave it out") from None
    return found
