"""What to measure, and in which order: plans, cells, the order of trials, the search for a capacity, sizes of trials.

Nothing here starts, asks or measures anything. Only `load_plan` reads a file; the rest is pure."""
