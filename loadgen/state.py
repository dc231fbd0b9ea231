"""What a load generator that runs as a service says of its load: the answers of its HTTP interface."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from loadgen.options import Load
from loadgen.summary import Progress, Summary

__all__ = ["LoadName", "LoadState", "State"]

State = Literal["idle", "running", "done", "failed", "cancelled"]


class LoadName(BaseModel):
    """By what a load is told from others."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: str
    topic: str
    first_seq: int
    count: int | None
    """None for a load that ends by its duration."""

    @classmethod
    def of(cls, load: Load) -> LoadName:
        """The name of `load`."""
        return cls(run=load.run, topic=load.topic, first_seq=load.first_seq, count=load.count)


class LoadState(BaseModel):
    """How the newest load is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: State
    """idle: there was no load yet; failed: it came to no summary; cancelled: it was stopped before its end."""
    load: LoadName | None = None
    progress: Progress | None = None
    """The last one; None within the first second."""
    summary: Summary | None = None
    """Once the load is done or cancelled."""
    error: str | None = None
    """Why it failed, in one line."""

    @property
    def acknowledged(self) -> int:
        """Records acknowledged as far as is known."""
        newest = self.summary or self.progress
        return 0 if newest is None else newest.acknowledged
