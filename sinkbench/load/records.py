"""The user's own records for the trials of a run, in place of those that loadgen makes itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import ValidationError

from loadgen.dataset.facts import SCHEME, DatasetFacts
from loadgen.dataset.topic import TopicAddress
from loadgen.errors import UnusableError
from sinkbench.errors import PlanError, ServiceError
from sinkbench.plan.plan import PlanLoad
from sinkbench.secrets import redacted
from sinkbench.stack import Endpoints
from sinkbench.stack.stackfile import KafkaSection

__all__ = ["KeptRecords", "keep_records"]


@dataclass(frozen=True)
class KeptRecords:
    """Records that were read once, for all trials of a run.

    Attributes:
        facts: what they are like.
        path: the file that they are kept in, as `loadgen.dataset.store` writes it.
        largest_bytes: the most that one and its key have in a topic.
    """

    facts: DatasetFacts
    path: Path
    largest_bytes: int


@contextmanager
def keep_records(load: PlanLoad, endpoints: Callable[[], Endpoints]) -> Iterator[KeptRecords | None]:
    """Reads the records that a plan's load names, and keeps them for as long as the context lasts; None of noaa's.

    `endpoints` are the stack's: a topic on its own Kafka is read with its settings.

    Raises PlanError if they cannot be used; says in which line.
    """
    if not load.own:
        yield None
        return
    # DuckDB, which reads some of them, takes its time to be imported.
    from loadgen.dataset.maker import DatasetMaker
    from loadgen.dataset.source import open_dataset

    try:
        dataset = open_dataset(load.records, load.key, _settings(load, endpoints))
    except UnusableError as error:
        raise PlanError(f"load.records: {redacted(str(error))}") from None
    with TemporaryDirectory(prefix="sinkbench-records-") as folder:
        path = Path(folder, "records")
        dataset.write(path)
        yield KeptRecords(dataset.facts, path, DatasetMaker(dataset, "r" * LONGEST_RUN).largest_bytes)


# Of a trial's name, which each record bears.
LONGEST_RUN = 60


def _settings(load: PlanLoad, endpoints: Callable[[], Endpoints]) -> Mapping[str, str]:
    """How to get into the cluster of a topic."""
    if not load.records.startswith(SCHEME):
        if load.cluster is not None:
            raise PlanError(f"load.cluster: is for a topic, and load.records is {load.records}; leave it out")
        return {}
    if load.cluster is not None:
        context = {"folder": Path()}
        try:
            section = {"bootstrap": TopicAddress.of(load.records).bootstrap, "settings": load.cluster}
            return KafkaSection.model_validate(section, context=context).settings
        except ValidationError as invalid:
            said = invalid.errors()[0]
            text = str(said.get("ctx", {}).get("text", said["msg"])).replace("{name}", "load.cluster")
            raise PlanError(redacted(text)) from None
    # A stack that is down may not know where its services will be.
    with suppress(ServiceError):
        there = endpoints()
        if {*there.kafka.split(",")} & {*TopicAddress.of(load.records).bootstrap.split(",")}:
            return there.kafka_settings
    return {}
