"""Prices for a cell's resources: a section of a plan, or a separate file. There are no default prices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from sinkbench import results
from sinkbench.errors import PlanError
from sinkbench.yamlfile import Section, YamlFile

Price = Annotated[float, Field(gt=0)]


class Prices(Section):
    """Prices of cores, memory and disk. Costs leave out what has no price."""

    currency: str = Field(pattern=r"^[^\s\x00-\x1f\x7f]+$", max_length=10, description="such as EUR")
    core_hour: Price | None = Field(default=None, description="price of one busy core for an hour")
    memory_gb_hour: Price | None = Field(default=None, description="price of 10^9 bytes of memory for an hour")
    disk_gb_month: Price | None = Field(default=None, description="price of 10^9 bytes on disk for a month")
    kept_months: Price = Field(default=1.0, description="how long a record stays on disk")

    def as_kept(self) -> results.Prices:
        return results.Prices(**self.model_dump())


def load_prices(path: Path) -> Prices:
    """Reads a file with the keys of a plan's `prices`. Raises PlanError with a line for each mistake."""
    source = YamlFile(path, "file of prices", PlanError)
    try:
        return Prices.model_validate(source.content)
    except ValidationError as invalid:
        raise PlanError(source.explain(invalid, Prices)) from None
