"""Asking a sink one query, and judging its answer."""

from __future__ import annotations

import time
from collections.abc import Callable

from sinkbench.analysis.query import Answer, Query, same_answer
from sinkbench.errors import ServiceError
from sinkbench.results import Asked
from sinkbench.services.failures import in_one_line

__all__ = ["asked"]


def asked(query: Query, ask: Callable[[], Answer], expected: Answer | None) -> Asked:
    """What came of a query.

    Args:
        ask: asks the sink.
        expected: what follows from the records that were sent; None if that is not known. Where there is nothing to
            find, nothing is proved.
    """
    started = time.monotonic()
    try:
        found = ask()
    except ServiceError as error:
        return Asked(query=query.name, right=False, problem=in_one_line(error))
    milliseconds = round((time.monotonic() - started) * 1000, 3)
    same = None if expected is None else same_answer(found, expected)
    right = None if same and not found.found else same
    return Asked(query=query.name, right=right, by_index=found.by_index, found=found.found, milliseconds=milliseconds)
