"""Numbers out of samples, each with the source of its formula: rates, lag, latency, intervals, tests, fits, audits.

All of it is pure: no service, file or clock is touched.
"""
