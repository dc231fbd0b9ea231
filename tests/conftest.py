"""What holds for all tests."""

from hypothesis import HealthCheck, settings

from tests.support.counts import count

# How long an example takes depends on the machine's load. The same examples each time: examples found by chance would
# fail tests that a change has not broken. `--hypothesis-profile=searching` draws others.
usual = settings(deadline=None, max_examples=count(50, 10), suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("sinkbench", usual, derandomize=True, database=None)
settings.register_profile("searching", usual, max_examples=500)
settings.load_profile("sinkbench")
