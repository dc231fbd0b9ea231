"""Records as somebody may bring them, by hypothesis, and one planted change in one of them."""

import json
import re
from typing import Any

from hypothesis import strategies as st

KNOWN = ("-0.0", "0e5", "1e23", "18446744073709551615", "12345678901234567890.12345", "1E-400", "1e4999")
_DIGITS = r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?"


class Number(str):
    """A number as it is spelled in JSON, of any size and precision."""


NUMBERS = st.sampled_from(KNOWN) | st.from_regex(re.compile(_DIGITS, re.ASCII), fullmatch=True)
# Of all planes, without what jsonb refuses: U+0000 and halves of characters.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS.map(Number) | TEXTS,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(TEXTS, each, max_size=3),
    max_leaves=12,
)


def text_of(value: Any) -> str:
    """The JSON text of such a value."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, list):
        return f"[{','.join(map(text_of, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{json.dumps(name)}:{text_of(each)}' for name, each in value.items())}}}"
    return json.dumps(value)


@st.composite
def changed(draw: Any, value: Any) -> Any:
    """The same value with another digit, character or boolean, or with a member or element less, at one place."""
    if isinstance(value, dict | list) and value:
        places = list(value) if isinstance(value, dict) else list(range(len(value)))
        place, made = draw(st.sampled_from(places)), value.copy()
        if draw(st.booleans()):
            made[place] = draw(changed(value[place]))
        else:
            del made[place]
        return made
    if isinstance(value, Number):
        mantissa = re.split("[eE]", value)[0]
        at = draw(st.sampled_from([at for at, sign in enumerate(mantissa) if sign.isdigit()]))
        # JSON's numbers begin with no zero.
        others = [digit for digit in "123456789" if digit != value[at]]
        return Number(value[:at] + draw(st.sampled_from(others)) + value[at + 1 :])
    if isinstance(value, str) and value:
        at = draw(st.integers(0, len(value) - 1))
        return (
            value[:at] + draw(st.sampled_from([each for each in "aé\U0001f600" if each != value[at]])) + value[at + 1 :]
        )
    return not value if isinstance(value, bool) else "0"
