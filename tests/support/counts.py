"""How much is tried: little usually, all of it with `scripts/test --all`."""

import os

FULL = os.environ.get("TESTS_FULL") == "1"


def count(full: int, usually: int) -> int:
    """How many examples a test takes."""
    return full if FULL else usually
