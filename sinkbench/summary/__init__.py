"""From trials to cells and from cells to a run: medians, intervals, efficiency, thresholds, the selftest's figures.

All of it is pure; how a figure is shown is up to `tables` and `report`."""
