"""Options are refused in one line that names them, before anything is sent."""

from typing import Any

import pytest

from loadgen.client import producer_config
from loadgen.errors import OptionsError
from loadgen.options import Load, load_from

USUAL = {"bootstrap": "127.0.0.1:9092", "topic": "tides", "count": 10}


def load(**options: Any) -> Load:
    return load_from({**USUAL, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": None}, "count, duration: found neither; give one of the two"),
        ({"duration_seconds": 3}, "count, duration: found both; give one of the two"),
        ({"count": 0}, "count: found 0; input should be greater than or equal to 1"),
        ({"rate": 0}, "rate: found 0; input should be greater than 0"),
        ({"rate": float("nan")}, "rate: found nan"),
        ({"acks": "2"}, "acks: found '2'; input should be '0', '1' or 'all'"),
        ({"topic": "a topic"}, "topic: found 'a topic'; "),
        ({"record_bytes": 2_000_000}, "record_bytes: found 2000000; "),
        ({"speed": 3}, "speed: no option has this name"),
        ({"key": "id"}, "key: records of noaa have the key of their gauge; "),
        ({"records": "a.ndjson", "keys": 500}, "records: found 'a.ndjson', whose sizes, keys and form are their own; "),
    ],
)
def test_an_unusable_option_is_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionsError) as caught:
        load(**options)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    with pytest.raises(OptionsError, match="bootstrap: is missing"):
        load_from({"topic": "t", "count": 1})


def test_a_rate_and_a_duration_ask_for_what_is_due_within_it() -> None:
    assert load(count=None, duration_seconds=2, rate=1000).asked == 2000
    assert load(count=None, duration_seconds=0.1, rate=0.5).asked == 1
    assert load(count=None, duration_seconds=2).asked is None
    assert load().asked == 10


def test_retries_cannot_duplicate_when_all_replicas_acknowledge() -> None:
    assert producer_config(load())["enable.idempotence"] is True
    assert producer_config(load(acks="1"))["enable.idempotence"] is False
    # Else a producer that is not idempotent sends each few records at once, however many requests wait.
    assert len({producer_config(load(acks=acks))["max.in.flight"] for acks in ("all", "1", "0")}) == 1
