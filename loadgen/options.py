"""The options of a load, as one model for the command line and the HTTP interface. Does not import numpy, which would
slow down commands that only read a plan."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints, ValidationError, field_validator, model_validator

from loadgen.errors import OptionsError
from loadgen.forms import DOCUMENT, Form
from loadgen.reading import parse_json

Acks = Literal["0", "1", "all"]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
NOAA = "noaa"
TopicName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
SEQ_DIGITS_OF_A_DURATION = 12
KEYS = 10_000
# The sum of decimal fractions differs from 1 in the last bits.
SHARES_DIFFER = 1e-6

Share = Annotated[float, Field(ge=0, le=1)]


class Changes(BaseModel, extra="forbid", frozen=True, strict=True, allow_inf_nan=False):
    """Shares of the records that insert, update and delete a key, and which keys are updated."""

    inserts: Share = Field(description="Share of the records that insert a key which is not there")
    updates: Share = Field(description="Share of the records that update a key which is there")
    deletes: Share = Field(0.0, description="Share of the records that delete a key: tombstones, without a value")
    skew: Literal["uniform", "zipf"] = Field("uniform", description="Which keys are updated: all alike, or few mostly")
    exponent: float = Field(1.0, gt=0, le=5, description="Of Zipf's law; 0.99 in YCSB")
    seed: int = Field(0, ge=0, le=2**63 - 1, description="Seed of the draws")

    @model_validator(mode="after")
    def _add_up(self) -> "Changes":
        total = self.inserts + self.updates + self.deletes
        if abs(total - 1) > SHARES_DIFFER:
            found = f"inserts {self.inserts:g}, updates {self.updates:g} and deletes {self.deletes:g}"
            raise ValueError(f"{found} add up to {total:g}; make that 1")
        if not self.inserts:
            raise ValueError("inserts is 0, so no key would ever be there; give a share above 0")
        return self


class Load(BaseModel, extra="forbid", frozen=True, strict=True, allow_inf_nan=False):
    """What to produce, where to, and how fast. Unknown keys are refused."""

    bootstrap: str = Field(min_length=1, description="Kafka's address, host:port; several with commas")
    topic: TopicName = Field(description="The topic; it is created if it does not exist")
    count: int | None = Field(None, ge=1, le=10**15, description="How many records; either this or a duration")
    duration_seconds: float | None = Field(
        None, gt=0, le=31_536_000, description="For how long, in seconds; either this or a count"
    )
    rate: float | None = Field(
        None, gt=0, le=10**8, description="Records per second, open loop; without it as fast as the broker acknowledges"
    )
    keys: int = Field(KEYS, ge=1, le=1_000_000, description="How many distinct keys, taken in turn")
    changes: Changes | None = Field(
        None,
        description="Inserts, updates and deletes of keys instead of records alone, as a JSON object:"
        ' {"inserts": 0.3, "updates": 0.6, "deletes": 0.1, "skew": "zipf", "exponent": 1.0, "seed": 0}',
    )
    record_bytes: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="Exact length of every record as a document, in bytes, whatever its form adds; 0 for no padding",
    )
    form: Form = Field(
        DOCUMENT,
        description="What a value is: document, the JSON as it is; row, with its values as columns; either with "
        "-debezium, in the envelope of Debezium's change events; and last with -schema, with Kafka Connect's schema",
    )
    records: str = Field(
        NOAA,
        min_length=1,
        description="What is loaded: noaa; a file (newline-delimited JSON, a JSON array, CSV or Parquet, also packed "
        "by gzip); or kafka://HOST:PORT/TOPIC. Over HTTP: noaa, or the sha256 of records sent before",
    )
    key: str | None = Field(
        None, min_length=1, description="Path in your own record to its key, such as customer.id; not for noaa"
    )
    acks: Acks = Field(
        "all",
        description="Who must have a record before it counts as acknowledged: all in-sync replicas, the leader (1), "
        "or none (0: it was handed to the socket)",
    )
    compression: Compression = Field("none", description="none, gzip, snappy, lz4 or zstd")
    linger_ms: float = Field(10, ge=0, le=10_000, description="How long a batch may wait for more records, in ms")
    batch_bytes: int = Field(262_144, ge=1_024, le=100_000_000, description="Largest batch of one partition, in bytes")
    partitions: int | None = Field(
        None, ge=1, le=100_000, description="Partitions of the topic; an existing topic must have as many"
    )
    replication: int | None = Field(
        None, ge=1, le=100, description="Replicas of each partition; an existing topic must have as many"
    )
    run: str = Field("load", min_length=1, max_length=200, description="What every record bears as bench.run")
    first_seq: int = Field(0, ge=0, le=10**15, description="The first record's bench.seq")
    clock_ahead_us: float = Field(
        0, description="How far this machine's clock is ahead of the one by which records are due, in microseconds"
    )
    delivery_timeout_seconds: float = Field(
        30, ge=1, le=3_600, description="A record not acknowledged after this long has failed"
    )

    @field_validator("changes", mode="before")
    @classmethod
    def _of_json(cls, value: object) -> object:
        return parse_json(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _fits_together(self) -> "Load":
        if (self.count is None) == (self.duration_seconds is None):
            found = "neither" if self.count is None else "both"
            raise ValueError(f"count, duration: found {found}; give one of the two")
        if self.changes is not None and self.form != DOCUMENT:
            raise ValueError(f"form: found {self.form!r}; changes are made of documents alone; leave it out")
        if self.records == NOAA and self.key is not None:
            raise ValueError("key: records of noaa have the key of their gauge; leave it out, or name other records")
        if self.records != NOAA and (self.record_bytes or self.keys != KEYS or self.form != DOCUMENT):
            raise ValueError(
                f"records: found {self.records!r}, whose sizes, keys and form are their own; leave record_bytes, keys"
                " and form out"
            )
        return self

    @property
    def asked(self) -> int | None:
        """Records asked for: the count, or those due within the duration; None for a duration without a rate."""
        if self.count is not None:
            return self.count
        if self.rate is not None and self.duration_seconds is not None:
            return max(1, math.ceil(round(self.rate * self.duration_seconds, 6)))
        return None

    @property
    def largest_seq(self) -> int:
        """Upper bound of bench.seq, which determines the length of a record."""
        asked = self.asked
        return 10**SEQ_DIGITS_OF_A_DURATION + self.first_seq if asked is None else self.first_seq + asked - 1


def load_from(values: Mapping[str, Any]) -> Load:
    """Makes a Load of plain values. Raises OptionsError, with the option and the value found."""
    try:
        return Load(**values)
    except ValidationError as error:
        raise OptionsError("; ".join(_line(problem) for problem in error.errors())) from None


def _line(problem: Any) -> str:
    message = str(problem["msg"]).removeprefix("Value error, ")
    if not problem["loc"]:
        return message
    name = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "missing":
        return f"{name}: is missing; give one"
    if problem["type"] == "extra_forbidden":
        return f"{name}: no option has this name"
    return f"{name}: found {problem['input']!r}; {message[:1].lower()}{message[1:]}"
