"""What all records have in common, a figure over several trials, and the counts of an audit."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Whole = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]


class Record(BaseModel):
    """A frozen record of finite numbers; fields that it does not know are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class Interval(Record):
    """Where the true value lies with so much confidence (0.95: 95 %), by which method, from how many blocks."""

    low: float
    high: float
    confidence: Annotated[float, Field(gt=0, lt=1)]
    method: str
    blocks: Whole


class Spread(Record):
    """One figure of a cell's valid trials: `values` in the order they were measured in."""

    median: Amount
    low: Amount
    """The lowest of the values; the interval's own bounds are in `interval`."""
    high: Amount
    values: list[Amount]
    blocks: list[Whole] = []
    interval: Interval | None = None
    """Of the median; None of fewer than 5 values."""

    def by_block(self) -> dict[int, float]:
        """The values by their blocks; none of a run that was stored without these."""
        return dict(zip(self.blocks, self.values, strict=False))


class RatePerSecond(Spread):
    """Records per second of a cell's valid trials."""


class RatioTo(Record):
    """How many times as fast a cell is as another, from the blocks in which both have a valid rate."""

    to: str
    estimate: Annotated[float, Field(gt=0)]
    """The median of the blocks' ratios, on the log scale."""
    blocks: Whole
    interval: Interval | None = None


class Fit(Record):
    """A fitted number and, from at least 5 blocks, its interval."""

    estimate: float
    interval: Interval | None = None


class Audit(Record):
    """Exact counts of records: what was produced, what the sink holds, and how the two differ.

    They reconcile, or ValidationError is raised: stored = produced - lost - dead letters + duplicates + foreign. Of a
    load of changes stored = produced - superseded - missing + not_deleted + duplicates + foreign."""

    produced: Whole
    stored: Whole
    lost: Whole
    duplicates: Whole
    foreign: Whole = 0
    dead_letters: Whole = 0
    """Records that are not in the sink, but in the connector's dead letter queue."""
    compared: Whole = 0
    """Records that were compared with the topic or with the checksum that they bear; 0 if none could be."""
    checked: Whole | None = None
    """Those that were compared with their checksum; 0 if they bear none; None if that was not tried."""
    altered: Whole = 0
    """Those that were compared, and lack a member that was sent, or have another value in it."""
    superseded: Whole = 0
    """Of a load of changes: records that delete, or that a later one of their key replaces or deletes."""
    stale: Whole | None = None
    """Keys of which the sink holds another version than the last; None of a load without changes, as the next two."""
    missing: Whole | None = None
    """Keys that were not deleted, and are not in the sink."""
    not_deleted: Whole | None = None
    """Keys that were deleted, and are in the sink."""

    @model_validator(mode="after")
    def _reconciles(self) -> Self:
        due = self.produced - self.superseded - self.lost - self.dead_letters - (self.missing or 0)
        due += self.duplicates + (self.not_deleted or 0) + self.foreign
        if self.stored != due:
            counts = "produced - superseded - lost - dead letters - missing + duplicates + not_deleted + foreign"
            raise ValueError(f"{self.stored} rows are stored, but {counts} is {due}")
        if self.altered > self.compared:
            raise ValueError(f"{self.altered} records are altered, of {self.compared} that were compared")
        return self

    @property
    def content_unknown(self) -> bool:
        """Whether nothing of what is stored was compared with what was sent, though it should have been."""
        return self.checked == 0 and not self.compared and bool(self.stored)

    @property
    def clean(self) -> bool:
        """Whether the sink holds every record exactly once, as it was sent, and nothing else."""
        wrong = self.lost or self.dead_letters or self.duplicates or self.foreign or self.altered
        return not wrong and not self.wrong_keys

    @property
    def wrong_keys(self) -> int:
        """Keys that are stale, missing or not deleted."""
        return sum(count or 0 for count in (self.stale, self.missing, self.not_deleted))

    @property
    def accounted(self) -> int:
        """Rows in the sink, and records of which nothing is to be left: as many as were produced if all went well."""
        return self.stored + self.superseded


class Reconciliation(Record):
    """Counts of the same records in the order they take, which should all be equal; None is what is not known."""

    sent: Whole | None = None
    acknowledged: Whole | None = None
    in_topic: Whole | None = None
    """The sum of the topic's end offsets."""
    consumed: Whole | None = None
    """The sum of the offsets that the connector's group has committed."""
    put: Whole | None = None
    """What the tasks have handed to the connector's `put`, by their own metrics."""
    stored: Whole | None = None
