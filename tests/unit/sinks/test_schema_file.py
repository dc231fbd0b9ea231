"""What a schema file has made or removed elsewhere."""

import pytest

from sinkbench.sinks.postgres.schema import Objects, difference

TABLE = {("table", 20_001): "public.tides"}
MANY = {("type", 20_000 + number): f"public.t{number}" for number in range(7)}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {}, ""),
        ({}, TABLE, "it makes table public.tides outside of the trial's own schema"),
        (TABLE, {}, "it removes table public.tides, which it has not made; leave that out"),
        # Made anew under its name it was removed.
        (TABLE, {("table", 20_002): "public.tides"}, "it removes table public.tides"),
        ({}, MANY, "it makes type public.t0, type public.t1, type public.t2 and 4 more outside"),
    ],
)
def test_what_was_made_or_removed_elsewhere_is_named(before: Objects, after: Objects, said: str) -> None:
    found = difference(before, after)
    assert (found or "").startswith(said)
    assert (found is None) == (not said)
