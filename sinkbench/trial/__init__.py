"""One trial: reset, load, run, stop, audit, record. `race` selects the trials and keeps their records."""
