"""The answers of loadgen's HTTP interface about its load."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from loadgen.summary import Progress, Summary

__all__ = ["LoadName", "LoadState", "State"]

State = Literal["idle", "running", "done", "failed", "cancelled"]


class LoadName(BaseModel, extra="forbid", frozen=True):
    """What identifies a load."""

    run: str
    topic: str
    first_seq: int
    count: int | None
    """None for a load that ends by its duration."""


class LoadState(BaseModel, extra="forbid", frozen=True):
    """The newest load of a load generator."""

    state: State
    """idle: no load yet; failed: ended without a summary; cancelled: stopped before its end."""
    load: LoadName | None = None
    progress: Progress | None = None
    """The last one; None in the first second."""
    summary: Summary | None = None
    """Set once the load is done or cancelled."""
    error: str | None = None
    """Why it failed, in one line."""

    @property
    def acknowledged(self) -> int:
        newest = self.summary or self.progress
        return 0 if newest is None else newest.acknowledged
