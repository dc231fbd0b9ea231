"""What is asked of a pipeline."""

import re
from dataclasses import dataclass

from sinkbench.errors import SizeError

ALL = "all"
_UNITS_MS = {"ms": 1.0, "s": 1_000.0, "min": 60_000.0}
# A poll, a write and its commit take longer on any network.
LEAST_P99_MS = 1.0


@dataclass(frozen=True)
class Asked:
    """A rate in records/s, and what else must hold; None is not asked, `record_bytes` None is as measured.

    `queries` is how many test queries an index must answer, or `all`; `headroom` the share of the rate left free."""

    rate: float
    record_bytes: float | None = None
    p99_ms: float | None = None
    queries: int | str = 0
    headroom: float = 0.3
    keep_days: float | None = None
    may_fail: int = 1
    cores_per_worker: float = 2.0

    @property
    def needed(self) -> float:
        """The rate that a pipeline must be able to store, in records/s."""
        return self.rate / (1 - self.headroom)


def p99_of(text: str) -> float:
    """`1s` or `500ms` in milliseconds; SizeError otherwise, and below a millisecond."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(ms|s|min)", text.strip())
    if found is None:
        raise SizeError(f"--p99 {text}: must be a time with its unit, as 500ms or 1s")
    value = float(found[1]) * _UNITS_MS[found[2]]
    if value < LEAST_P99_MS:
        raise SizeError(
            f"--p99 {text}: is below what a poll of Kafka and a write take; give {LEAST_P99_MS:g}ms or more"
        )
    return value


def queries_of(text: str) -> int | str:
    """`all`, `none` or a number."""
    if text == ALL:
        return ALL
    if text != "none" and not re.fullmatch(r"\d{1,4}", text):
        raise SizeError(f"--queries {text}: must be all, none, or how many")
    return 0 if text == "none" else int(text)
