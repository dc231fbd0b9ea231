"""A run from its beginning to its end, or from where it was interrupted: all trials of a plan on one stack.

How one trial goes is up to `trial`; what the figures say is up to `summary`."""
