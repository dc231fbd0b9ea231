"""Fills a Kafka topic with unique NOAA-style JSON records and accounts for each. Only `engine` loads Kafka's client."""

from __future__ import annotations

from loadgen.errors import BrokerError, LoadgenError, OptionsError, TopicError, UnusableError
from loadgen.options import Load, load_from
from loadgen.summary import Progress, Summary

__all__ = [
    "BrokerError",
    "Load",
    "LoadgenError",
    "OptionsError",
    "Progress",
    "Summary",
    "TopicError",
    "UnusableError",
    "load_from",
]
