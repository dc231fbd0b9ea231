"""What a run leaves behind, as other programs may rely on it: the records of trials.jsonl and summary.json.

A value that was not measured is None (`null` in the files), never 0. Unknown fields of a file are ignored."""

# ruff: noqa: F403 - all records are given here, whatever module they are in

from sinkbench.results.base import *
from sinkbench.results.cell import *
from sinkbench.results.figures import *
from sinkbench.results.run import *
