"""From trials to cells, and from cells to a run: medians, intervals, efficiency, thresholds, selftests. Pure."""
