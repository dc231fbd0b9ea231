"""Supported versions of a service, and the release of Kafka brokers. Kafka's protocol does not tell it, but each
release raised the version of some request. librdkafka asks every broker for these, and shows them only in its log."""

import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from sinkbench.services.failures import map_exceptions

DOTTED = re.compile(r"\d+(?:\.\d+)*")
# API keys of requests that every broker offers, whatever its settings.
PRODUCE, FETCH, LIST_OFFSETS, DESCRIBE_LOG_DIRS = 0, 1, 2, 35
# The first release with this version of the request, with ZooKeeper and without.
SINCE = (
    ("3.7", PRODUCE, 10),
    ("3.8", PRODUCE, 11),
    ("3.9", FETCH, 17),
    ("4.0", PRODUCE, 12),
    ("4.1", PRODUCE, 13),
    ("4.2", LIST_OFFSETS, 11),
    ("4.3 or later", DESCRIBE_LOG_DIRS, 5),
)
OLDER = "3.6 or earlier"
# One line per request: name, API key, lowest and highest version that the broker supports.
LINE = re.compile(r"ApiKey \S+ \((\d+)\) Versions -?\d+\.\.(\d+)")
QUIET_SECONDS = 0.2


@dataclass(frozen=True)
class Supported:
    """The versions from `least` on, and below `below` if given; `words` is for display, such as "8.19 and 9"."""

    words: str
    least: tuple[int, ...]
    below: tuple[int, ...] | None = None

    def refusal(self, title: str, version: str | None) -> str | None:
        """Returns in one line why a version cannot be used; None if it can, or has no number."""
        numbers = numbers_of(version)
        if not numbers or (self.least <= numbers and (self.below is None or numbers < self.below)):
            return None
        return f"it is {title} {'.'.join(map(str, numbers))}; sinkbench supports {title} {self.words}"


def numbers_of(version: str | None) -> tuple[int, ...]:
    """Returns the first dotted number in a service's version; empty if there is none."""
    found = DOTTED.search(version or "")
    return () if found is None else tuple(int(number) for number in found[0].split("."))


KAFKA = Supported("3.7 and later", (3, 7))


def release_of(highest: Mapping[int, int]) -> str | None:
    """Returns the release, such as "3.8", from the highest version of each request; None without any. The first missing
    step decides, since other implementations may support some requests of a later release."""
    if not highest:
        return None
    release = OLDER
    for name, request, version in SINCE:
        if highest.get(request, -1) < version:
            break
        release = name
    return release


def kafka_release(bootstrap: str, settings: Mapping[str, str], timeout_seconds: float) -> str | None:
    """Returns the release of the oldest broker that answers within `timeout_seconds`; None if unknown. Raises
    ServiceError if librdkafka rejects the settings, or no broker answers."""
    # The highest version of each request that all brokers support.
    highest: dict[int, int] = {}

    def note(record: logging.LogRecord) -> bool:
        if found := LINE.search(record.getMessage()):
            request, version = int(found[1]), int(found[2])
            highest[request] = min(highest.get(request, version), version)
        return False

    logger = logging.Logger("librdkafka")
    logger.addFilter(note)
    deadline = time.monotonic() + timeout_seconds
    with map_exceptions(KafkaException):
        admin = AdminClient({**settings, "bootstrap.servers": bootstrap, "debug": "feature"}, logger=logger)
        admin.list_topics(timeout=timeout_seconds)
    # Polling delivers what was logged.
    while admin.poll(QUIET_SECONDS) and time.monotonic() < deadline:
        continue
    return release_of(highest)
