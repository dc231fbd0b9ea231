"""Which release of Kafka brokers are.

Kafka's protocol tells no release, but which versions of each request a broker takes, and every release has raised
some. librdkafka asks every broker for these, and shows them in its log alone.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from sinkbench.services.failures import map_exceptions
from sinkbench.services.versions import Supported

__all__ = ["SUPPORTED", "kafka_refusal", "kafka_release", "release_of"]

SUPPORTED = Supported("3.7 and later", (3, 7))
# Requests by their numbers in the protocol. Every broker offers these, however it is set.
PRODUCE, FETCH, LIST_OFFSETS, DESCRIBE_LOG_DIRS = 0, 1, 2, 35
# The first release that takes such a request in that version, with ZooKeeper as without it.
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
# One line for each request: its name, its number, and from which version to which the broker takes it.
LINE = re.compile(r"ApiKey \S+ \((\d+)\) Versions -?\d+\.\.(\d+)")
QUIET_SECONDS = 0.2


def release_of(highest: Mapping[int, int]) -> str | None:
    """The release whose protocol a broker speaks, as far as it can be told, such as "3.8".

    Another program than Kafka may speak some requests as a later release does: the earliest that it falls behind of
    counts.

    Args:
        highest: the highest version of each request that it takes, by the request's number; None comes of nothing.
    """
    if not highest:
        return None
    release = OLDER
    for name, request, version in SINCE:
        if highest.get(request, -1) < version:
            break
        release = name
    return release


def kafka_refusal(release: str | None) -> str | None:
    """Why brokers of that release cannot be used, in one line; None if they can, or if it is not known."""
    if SUPPORTED.refusal("Kafka", release) is None:
        return None
    return f"its protocol is that of Kafka {release}; sinkbench supports Kafka {SUPPORTED.words}"


def kafka_release(bootstrap: str, settings: Mapping[str, str], timeout_seconds: float) -> str | None:
    """The release of the brokers that answer at these addresses, the oldest of them; None if none has told in time.

    Args:
        bootstrap: host:port of brokers, separated by commas.
        settings: further settings of librdkafka, such as those for SASL and TLS.
        timeout_seconds: how long that may take.

    Raises:
        ServiceError: librdkafka cannot use the settings, or no broker answers.
    """
    told = _Told()
    logger = logging.Logger("librdkafka")
    logger.addHandler(told)
    deadline = time.monotonic() + timeout_seconds
    with map_exceptions(KafkaException):
        admin = AdminClient({**settings, "bootstrap.servers": bootstrap, "debug": "feature"}, logger=logger)
        admin.list_topics(timeout=timeout_seconds)
    # What was logged is handed out by polling.
    while admin.poll(QUIET_SECONDS) and time.monotonic() < deadline:
        continue
    return release_of(told.highest)


class _Told(logging.Handler):
    """Keeps the highest version of each request that all brokers take."""

    def __init__(self) -> None:
        super().__init__()
        self.highest: dict[int, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if found := LINE.search(record.getMessage()):
            request, version = int(found[1]), int(found[2])
            self.highest[request] = min(self.highest.get(request, version), version)
