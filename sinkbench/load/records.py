"""Your own records for the trials of a run, in place of those that loadgen makes."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import ValidationError

from loadgen.dataset.topic import TopicAddress
from loadgen.errors import UnusableError
from loadgen.summary import SCHEME, DatasetFacts
from sinkbench.errors import PlanError, ServiceError
from sinkbench.plan.plan import PlanLoad
from sinkbench.secrets import redacted
from sinkbench.stack import Endpoints
from sinkbench.stack.external import KafkaSection


@dataclass(frozen=True)
class KeptRecords:
    """Records that are read once, for all trials of a run, and kept as `loadgen.dataset.store` writes them.
    `largest_bytes` is the most that one record and its key take in a topic."""

    facts: DatasetFacts
    path: Path
    largest_bytes: int

    def keyless(self, key: str | None) -> str | None:
        """Why not all records have a key, which `load.key` names, and what to do; None if they have."""
        lacking = f"{self.facts.records - self.facts.with_key:,} of {self.facts.records:,} have none"
        first = f", the first in {self.facts.keyless}" if self.facts.with_key else ""
        at, fix = ("", "name a path to it: load.key") if key is None else (f" at load.key {key}", "name another path")
        return None if self.facts.with_key == self.facts.records else f"{lacking}{at}{first}; {fix}"


@contextmanager
def keep_records(
    load: PlanLoad, endpoints: Callable[[], Endpoints], where: str = "load.records"
) -> Iterator[KeptRecords | None]:
    """Reads the records that a plan's load names and keeps them while the context lasts; yields None for NOAA's. A
    topic on the stack's own Kafka is read with the settings of `endpoints`. Raises PlanError, with the line and `where`
    they are named, if the records cannot be used."""
    if not load.own:
        yield None
        return
    # DuckDB, which reads some formats, is slow to import.
    from loadgen.dataset.source import open_dataset
    from loadgen.dataset.store import DatasetMaker

    try:
        dialect = load.delimiter, load.header
        dataset = open_dataset(load.records, load.key, _settings(load, endpoints), dialect=dialect)
    except UnusableError as error:
        raise PlanError(f"{where}: {redacted(str(error))}") from None
    with TemporaryDirectory(prefix="sinkbench-records-") as folder:
        path = Path(folder, "records")
        dataset.write(path)
        yield KeptRecords(dataset.facts, path, DatasetMaker(dataset, "r" * LONGEST_RUN).largest_bytes)


# Characters of a trial's name, which each record carries.
LONGEST_RUN = 60


def _settings(load: PlanLoad, endpoints: Callable[[], Endpoints]) -> Mapping[str, str]:
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
    # A stack that is down may not know its services' addresses.
    with suppress(ServiceError):
        there = endpoints()
        if {*there.kafka.split(",")} & {*TopicAddress.of(load.records).bootstrap.split(",")}:
            return there.kafka_settings
    return {}
