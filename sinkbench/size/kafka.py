"""The sustained limit of a Kafka cluster, by what each broker's storage and networks sustain.

    limit <= min(storage B / r, storage network B / r, network B / (g + r - 1))

B brokers, r replicas, g consumer groups that read at the end of the topic; MB/s of 10^6 bytes as in the topic.
Production should stay below 80 % of it. AWS, "Best practices for right-sizing your Apache Kafka clusters to optimize
performance and cost", 2022, equation 1. Bursts and reads of old records are not in it."""

import math
import re
from dataclasses import dataclass, replace
from typing import Any

from sinkbench.analysis.words import counted, percent
from sinkbench.errors import SizeError
from sinkbench.tables.text import new_table, plain_text, words

MOST_IN_SWEEP = 30
# What is this near to the limit counts as equal, since 480 / 3 is not exact.
_EQUAL = 1e-9


@dataclass(frozen=True)
class Cluster:
    """Equal brokers; what one of them sustains, in MB/s: its storage, the network to that, and its own network."""

    brokers: int
    replicas: int
    groups: int
    storage_mb: float
    storage_network_mb: float
    network_mb: float

    def __post_init__(self) -> None:
        if self.brokers < self.replicas:
            few = f"--brokers {self.brokers}: cannot hold {self.replicas} replicas"
            raise SizeError(f"{few}; give as many brokers, or more")

    @property
    def terms(self) -> dict[str, float]:
        """The limit by each part, in MB/s; infinite of a network through which nothing leaves a broker."""
        leaving = self.groups + self.replicas - 1
        return {
            "storage": self.storage_mb * self.brokers / self.replicas,
            "storage network": self.storage_network_mb * self.brokers / self.replicas,
            "network": self.network_mb * self.brokers / leaving if leaving else math.inf,
        }

    @property
    def limit_mb(self) -> float:
        return min(self.terms.values())

    @property
    def binds(self) -> list[str]:
        """The part with the lowest limit; several if they have the same."""
        return [name for name, value in self.terms.items() if value <= self.limit_mb * (1 + _EQUAL)]


def fewest_brokers(one: Cluster, rate_mb: float, utilization: float) -> Cluster:
    """The smallest cluster of such brokers that takes the rate in MB/s at this share of its limit."""
    of_each = utilization * one.limit_mb / one.brokers
    return replace(one, brokers=max(one.replicas, math.ceil(rate_mb / of_each * (1 - _EQUAL))))


def brokers_of(text: str) -> list[int]:
    """`3`, or `3..12` for each number from 3 to 12. SizeError otherwise."""
    found = re.fullmatch(r"(\d{1,6})(?:\.\.(\d{1,6}))?", text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 0 < first <= last < first + MOST_IN_SWEEP:
        raise SizeError(f"--brokers {text}: must be a number above 0, or up to {MOST_IN_SWEEP} of them, as 3..12")
    return list(range(first, last + 1))


def rate_mb_of(rate: float | None, record_bytes: float | None, rate_mb: float | None) -> float | None:
    """The required rate in MB/s, from records/s and bytes, or as it is; None without one. SizeError for half of it."""
    given = {"--rate": rate, "--bytes": record_bytes, "--rate-mb": rate_mb}
    names = [name for name, value in given.items() if value is not None]
    if names not in ([], ["--rate", "--bytes"], ["--rate-mb"]):
        raise SizeError(f"{' and '.join(names)}: a rate is --rate with --bytes of a record, or --rate-mb alone")
    return rate_mb if rate is None or record_bytes is None else rate * record_bytes / 1e6


def row(cluster: Cluster, utilization: float) -> dict[str, Any]:
    """Plain values, for JSON; an infinite limit is None."""
    return {
        "brokers": cluster.brokers,
        "terms_mb": {name: value if math.isfinite(value) else None for name, value in cluster.terms.items()},
        "limit_mb": cluster.limit_mb,
        "recommended_mb": cluster.limit_mb * utilization,
        "binds": cluster.binds,
    }


def lines(clusters: list[Cluster], utilization: float, rate_mb: float | None, fewest: Cluster | None) -> list[str]:
    """A row for each cluster, then the fewest brokers if a rate is given, and the assumptions."""
    heads = ("storage", "storage network", "network", "limit", f"at {percent(utilization)}")
    rows = [
        [str(each.brokers), *map(_mb, (*each.terms.values(), each.limit_mb, each.limit_mb * utilization)), _binds(each)]
        for each in clusters
    ]
    said = plain_text([new_table("brokers", *heads, words("binds"), rows=rows)]).splitlines() if rows else []
    if fewest is not None and rate_mb is not None:
        bind = "binds" if len(fewest.binds) == 1 else "bind"
        used = f"{percent(rate_mb / fewest.limit_mb)} of {_mb(fewest.limit_mb)} MB/s; {_binds(fewest)} {bind}"
        said.append(f"Fewest brokers for {_mb(rate_mb)} MB/s at {percent(utilization)}: {fewest.brokers} ({used})")
    one = fewest or clusters[0]
    groups = counted(one.groups, "consumer group")
    return [
        *said,
        f"MB/s of 10^6 bytes; {counted(one.replicas, 'replica')}, {groups} (each pipeline is one).",
        "Sustained, leaders even; no bursts, no reads of old records (AWS, right-sizing Kafka, equation 1).",
    ]


def _binds(cluster: Cluster) -> str:
    return " and ".join(cluster.binds)


def _mb(value: float) -> str:
    return "no limit" if math.isinf(value) else f"{value:,.0f}" if value >= 1 else f"{value:.2g}"
