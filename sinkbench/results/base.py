"""What all records have in common, and a figure over several trials: its median, its span and its interval."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Amount", "Fit", "Interval", "RatePerSecond", "RatioTo", "Record", "Spread", "Whole"]

Whole = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]


class Record(BaseModel):
    """A frozen record of finite numbers; fields that it does not know are ignored."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        allow_inf_nan=False,
        # So that the schema tells what each field is.
        use_attribute_docstrings=True,
    )


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
    """The block of each value."""
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
    """The key of the other cell."""
    estimate: Annotated[float, Field(gt=0)]
    """The median of the blocks' ratios, on the log scale."""
    blocks: Whole
    interval: Interval | None = None
    """Of the estimate; None of fewer than 5 blocks."""


class Fit(Record):
    """A fitted number and, from at least 5 blocks, its interval."""

    estimate: float
    interval: Interval | None = None
