"""Takes all trials of a plan on one stack. `trial` takes one trial; `summary` interprets the figures."""
