"""Reasons why figures must not be used, for whoever makes something of trials."""

from sinkbench.errors import ReasonCode
from sinkbench.results import Reason


def because(text: str, code: ReasonCode = ReasonCode.SERVICE_DIED) -> Reason:
    """A reason without figures."""
    return Reason(code=code, text=text)
