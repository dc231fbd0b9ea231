"""Numbers as tables show them, at the edges where their format changes."""

import math

import pytest

from sinkbench.analysis.words import NOT_MEASURED, milliseconds, money, percent, tenths, times, whole


@pytest.mark.parametrize(
    ("shown", "as_text"),
    [
        (whole(12_345.4), "12,345"),
        (whole(-0.2), "0"),
        (whole(None), NOT_MEASURED),
        (whole(math.nan), NOT_MEASURED),
        (tenths(1_234.56), "1234.6"),
        (tenths(9.44, 9.5), "9.4"),
        (tenths(9.5, 9.5), "10"),
        (tenths(None), NOT_MEASURED),
        (times(99.94), "99.9"),
        (times(99.95), "100"),
        (milliseconds(0.994), "0.99"),
        (milliseconds(1), "1.0"),
        (milliseconds(99.5), "100"),
        (milliseconds(None), NOT_MEASURED),
        (percent(0.0994), "9.9 %"),
        (percent(0.0995), "10 %"),
        (percent(0), "0.0 %"),
        *((money(None), "-"), (money(0.0), "0.00"), (money(1_234.5), "1,234.50"), (money(1.0), "1.00")),
        *((money(0.123456), "0.123"), (money(0.01), "0.0100"), (money(0.000012345), "0.0000123")),
    ],
)
def test_a_number_has_as_many_digits_as_tell_something(shown: str, as_text: str) -> None:
    assert shown == as_text
