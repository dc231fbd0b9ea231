"""The file of an index or a table that a sink proposes for your own records."""

from __future__ import annotations

from typing import NamedTuple


class Proposal(NamedTuple):
    """A proposed file: the ending of its name, such as ".sql", its text, and what it leaves out, one line each."""

    ending: str
    text: str
    notes: tuple[str, ...] = ()
