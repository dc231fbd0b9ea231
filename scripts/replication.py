"""Writes the study of all claims from what `sinkbench replicate --json` printed.

sinkbench replicate --json | python -m scripts.replication > docs/studies/replication.md
"""

import json
import sys
from typing import Any

HEAD = """# What was published, and what was measured

**Question.** Which findings of the articles, and which rules of vendors, hold on a small machine?

**Plan.** {plans}:
one run of each, with its plan's trials, or one where all is counted. [What a verdict means](../replicate.md).

**Machine.** 2 AMD EPYC cores, 25 GB, a shared virtual machine with Debian 12; runs of {days}.

## Result

{totals}. A verdict holds for this machine: each claim's file in `claims/` says what is different.

| | published | measured | verdict |
| --- | --- | --- | --- |"""
TAIL = """
## What it does not show

What lacks a run has its command; a run that was broken off decides nothing. Most of what no run can tell needs more
cores, machines or disks.
"""


def row(claim: dict[str, Any]) -> str:
    """One claim's line of the table."""
    against = f" (but: {claim['contradiction']})" if claim["contradiction"] else ""
    why = f": {claim['why']}" if claim["why"] else ""
    command = f" `{claim['command']}`" if claim["command"] else ""
    cells = (
        claim["name"],
        claim["published"] + against,
        "; ".join(claim["measured"]),
        claim["verdict"] + why + command,
    )
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def main() -> None:
    found = json.load(sys.stdin)
    runs = sorted({claim["run"] for claim in found["claims"] if claim["run"]})
    if not runs:
        sys.exit("no claim has a run; give `sinkbench replicate --json` the folder with the results: --results")
    days = [f"{run[:4]}-{run[4:6]}-{run[6:8]}" for run in runs]
    plans = ", ".join(f"`{plan}`" for plan in sorted({run.split("-", 1)[1] for run in runs}))
    totals = ", ".join(f"{number} {verdict}" for verdict, number in found["totals"].items())
    sys.stdout.write(
        HEAD.format(plans=plans, days=" to ".join(dict.fromkeys((days[0], days[-1]))), totals=totals) + "\n"
    )
    sys.stdout.writelines(f"{row(claim)}\n" for claim in found["claims"])
    sys.stdout.write(TAIL)


if __name__ == "__main__":
    main()
