"""Prices for a cell's resources: a section of a plan, or a separate file. There are no default prices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from sinkbench import results
from sinkbench.errors import PlanError
from sinkbench.yamlfile import Section, YamlFile, mistake, shown

_LONGEST_CURRENCY = 10
_PRICES = ("core_hour", "memory_gb_hour", "disk_gb_month")


def _more_than_nothing(value: object) -> object:
    # A price of 0 would look like a forgotten one.
    if isinstance(value, int | float) and not isinstance(value, bool) and value <= 0:
        raise mistake(f"{{name}} must be more than 0, found {shown(value)}; leave the key out if it is not to be paid")
    return value


Price = Annotated[float, BeforeValidator(_more_than_nothing)]


class Prices(Section):
    """Prices of cores, memory and disk. Costs leave out what has no price."""

    currency: str = Field(description="such as EUR")
    core_hour: Price | None = Field(default=None, description="price of one busy core for an hour")
    memory_gb_hour: Price | None = Field(default=None, description="price of 10^9 bytes of memory for an hour")
    disk_gb_month: Price | None = Field(default=None, description="price of 10^9 bytes on disk for a month")
    kept_months: Price = Field(default=1.0, description="how long a record stays on disk")

    @field_validator("currency")
    @classmethod
    def _is_a_currency(cls, value: str) -> str:
        if not (value.strip() == value and value.isprintable() and 0 < len(value) <= _LONGEST_CURRENCY):
            raise mistake(
                f"{{name}} must be 1 to {_LONGEST_CURRENCY} letters such as EUR, found {shown(value)};"
                " say what the prices are in"
            )
        return value

    @model_validator(mode="after")
    def _prices_something(self) -> Self:
        if all(getattr(self, name) is None for name in _PRICES):
            raise mistake(f"no price is given; give at least one of {', '.join(_PRICES)}, or leave the prices out")
        return self

    def as_kept(self) -> results.Prices:
        return results.Prices(**self.model_dump())


def load_prices(path: Path) -> Prices:
    """Reads a file with the keys of a plan's `prices`. Raises PlanError with a line for each mistake."""
    source = YamlFile(path, "file of prices", PlanError)
    try:
        return Prices.model_validate(source.content)
    except ValidationError as invalid:
        raise PlanError(source.explain(invalid, Prices)) from None
