"""What a sink proposes for your own records: the file of an index, or of a table."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Proposal"]


class Proposal(NamedTuple):
    """A file that is proposed.

    Attributes:
        ending: of its name, as ".sql".
        text: what is in it.
        notes: what it leaves out, a line each.
    """

    ending: str
    text: str
    notes: tuple[str, ...] = ()
