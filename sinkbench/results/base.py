"""What all models of results are made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Amount", "Record", "Whole"]

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
