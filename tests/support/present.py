"""Values that a test needs to be there before it asks for their parts."""

from typing import TypeVar

Value = TypeVar("Value")


def present(value: Value | None) -> Value:
    """The value, which must not be None."""
    assert value is not None
    return value
