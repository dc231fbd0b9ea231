"""The options of a load of changes. Does not import numpy, which would slow down commands that only read a plan."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

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
    def _add_up(self) -> Changes:
        if (wrong := shares_add_up(self.inserts, self.updates, self.deletes)) is not None:
            raise ValueError(wrong)
        return self


def shares_add_up(inserts: float, updates: float, deletes: float) -> str | None:
    """Returns what is wrong with the shares, in words; None if they are valid."""
    total = inserts + updates + deletes
    if abs(total - 1) > SHARES_DIFFER:
        return f"inserts {inserts:g}, updates {updates:g} and deletes {deletes:g} add up to {total:g}; make that 1"
    if not inserts:
        return "inserts is 0, so no key would ever be there; give a share above 0"
    return None
