"""Which versions are refused, and by which number; no service is asked."""

import pytest

from sinkbench.services.versions import KAFKA, OLDER, release_of
from sinkbench.sinks.elasticsearch.service import SERVICE as ELASTICSEARCH
from sinkbench.sinks.postgres.service import PGBOUNCER, POSTGRES
from sinkbench.stack.external import advice
from sinkbench.stack.registry import SinkService


@pytest.mark.parametrize(
    ("service", "version", "number"),
    [
        (ELASTICSEARCH, "8.18.8", "8.18.8"),
        (ELASTICSEARCH, "8.19.0", None),
        (ELASTICSEARCH, "10.0.0", "10.0.0"),
        (POSTGRES, "12.22 (Debian 12.22-1.pgdg120+1)", "12.22"),
        (POSTGRES, "13.0", None),
        (POSTGRES, "18beta1", None),
        (POSTGRES, "19devel", "19"),
        # As the console says at its door.
        (PGBOUNCER, "1.9.0/bouncer", "1.9.0"),
        (PGBOUNCER, "PgBouncer 1.18.0", None),
        (POSTGRES, "devel", None),
        (ELASTICSEARCH, None, None),
    ],
)
def test_a_version_that_is_not_supported_is_refused_by_its_number(
    service: SinkService, version: str | None, number: str | None
) -> None:
    assert service.supported is not None
    said = service.supported.refusal(service.title, version)
    supported = f"sinkbench supports {service.title} {service.supported.words}"
    assert said == (None if number is None else f"it is {service.title} {number}; {supported}")
    if said is not None:
        assert advice(said) == "name a cluster of such a version"


# What brokers of these releases answered or declare, of those requests that tell: by number, the highest version.
KAFKA_3_6 = {0: 9, 1: 15, 2: 8, 35: 4}
KAFKA_4_3 = {0: 13, 1: 18, 2: 11, 35: 5}


@pytest.mark.parametrize(
    ("highest", "release", "refused"),
    [
        (KAFKA_3_6, OLDER, True),
        ({**KAFKA_4_3, 0: 10, 1: 16}, "3.7", False),
        (KAFKA_4_3, "4.3 or later", False),
        # Another program, which has learnt one request of a later release.
        ({**KAFKA_3_6, 1: 17}, OLDER, True),
        ({}, None, False),
    ],
)
def test_a_broker_has_the_release_of_its_protocol(highest: dict[int, int], release: str | None, refused: bool) -> None:
    assert release_of(highest) == release
    assert (KAFKA.refusal("Kafka", release) is not None) == refused
