"""One trial: reset, load, run, stop, audit, record. Drain, sustain and re-scale are its kinds.

Which trials are taken, and what becomes of their records, is up to `race`."""
