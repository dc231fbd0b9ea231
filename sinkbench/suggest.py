"""The known name nearest to an unknown one, for messages."""

import difflib
from collections.abc import Iterable

_LISTED_AT_MOST = 12


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name most similar to `name`, ignoring case; None if there is none. If no spelling is similar,
    it is the shortest name that contains `name`: `jdbc` finds `postgres/jdbc`."""
    by_folded = {candidate.casefold(): candidate for candidate in sorted(known, reverse=True)}
    folded = name.casefold()
    if close := difflib.get_close_matches(folded, sorted(by_folded), n=1, cutoff=0.6):
        return by_folded[close[0]]
    holding = [candidate for candidate in sorted(by_folded) if folded and folded in candidate]
    return by_folded[min(holding, key=len)] if holding else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns the end of a message: "; did you mean ...", else "; known: ...", else ""."""
    names = sorted(known)
    if (found := nearest(name, names)) is not None:
        return f"; did you mean '{found}'?"
    if not names:
        return ""
    rest = len(names) - _LISTED_AT_MOST
    return f"; known: {', '.join(names[:_LISTED_AT_MOST])}" + (f" and {rest} more" if rest > 0 else "")
