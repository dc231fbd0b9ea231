"""The options of a load, as one model for the command line and the HTTP interface."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints, ValidationError, field_validator, model_validator

from loadgen.changes import Changes
from loadgen.errors import OptionsError
from loadgen.forms import DOCUMENT, Form
from loadgen.reading import parse_json

Acks = Literal["0", "1", "all"]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Pace = Literal["even", "recorded"]
NOAA = "noaa"
TopicName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
SEQ_DIGITS_OF_A_DURATION = 12
KEYS = 10_000


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
        "by gzip or zstd); or kafka://HOST:PORT/TOPIC. Over HTTP: noaa, or the sha256 of records sent before",
    )
    key: str | None = Field(
        None, min_length=1, description="Path in your own record to its key, such as customer.id; not for noaa"
    )
    pace: Pace = Field(
        "even",
        description="even: as `rate` says; recorded: in the rhythm of the times of the topic in `records`, on "
        "average at `rate` if there is one",
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
    changes: Changes | None = Field(
        None,
        description="Inserts, updates and deletes of keys instead of records alone, as a JSON object:"
        ' {"inserts": 0.3, "updates": 0.6, "deletes": 0.1, "skew": "zipf", "exponent": 1.0, "seed": 0}',
    )
    run: str = Field("load", min_length=1, max_length=200, description="What every record bears as bench.run")
    first_seq: int = Field(0, ge=0, le=10**15, description="The first record's bench.seq")
    first_t: str = Field(
        "2026-01-01 00:00", description='Time of each gauge\'s first level, "YYYY-MM-DD HH:MM"; then every 6 minutes'
    )
    delivery_timeout_seconds: float = Field(
        30, ge=1, le=3_600, description="A record not acknowledged after this long has failed"
    )

    @field_validator("changes", mode="before")
    @classmethod
    def _of_json(cls, value: object) -> object:
        return parse_json(value) if isinstance(value, str) else value

    @field_validator("first_t")
    @classmethod
    def _is_a_minute(cls, value: str) -> str:
        try:
            moment = datetime.strptime(value, "%Y-%m-%d %H:%M")
        except ValueError:
            raise ValueError('must be a time as "YYYY-MM-DD HH:MM"') from None
        if not 1900 <= moment.year <= 2200:
            raise ValueError("must be between the years 1900 and 2200")
        return moment.strftime("%Y-%m-%d %H:%M")

    @model_validator(mode="after")
    def _ends_in_one_way(self) -> Load:
        if (self.count is None) == (self.duration_seconds is None):
            found = "neither" if self.count is None else "both"
            raise ValueError(f"count, duration: found {found}; give one of the two")
        return self

    @model_validator(mode="after")
    def _records_are_of_one_kind(self) -> Load:
        if self.records == NOAA:
            if self.key is not None:
                raise ValueError(
                    "key: records of noaa have the key of their gauge; leave it out, or name other records"
                )
            if self.pace != "even":
                raise ValueError("pace: records of noaa have no times; leave it out, or name a topic")
        elif self.record_bytes or self.keys != KEYS or self.form != DOCUMENT:
            raise ValueError(
                f"records: found {self.records!r}, whose sizes, keys and form are their own; leave record_bytes, keys"
                " and form out"
            )
        return self

    @model_validator(mode="after")
    def _changes_are_documents(self) -> Load:
        if self.changes is not None and self.form != DOCUMENT:
            raise ValueError(f"form: found {self.form!r}; changes are made of documents alone; leave it out")
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
