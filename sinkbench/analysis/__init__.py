"""Figures from samples: rates, lag, latency, intervals, tests, fits, audits. Pure: no service, file or clock."""
