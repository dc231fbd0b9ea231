"""Levels follow each station's tide."""

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.tide import STEPS_BEFORE_REPEAT, Tide, load_stations, times
from tests.support.counts import count

DAY = 240
YEAR = 365 * DAY


def test_there_are_about_a_hundred_stations_each_once_and_every_value_a_string() -> None:
    stations = load_stations()
    assert len(stations) >= 100
    assert len({station.id for station in stations}) == len({station.name for station in stations}) == len(stations)
    for station in stations:
        assert re.fullmatch(r"\d{7}", station.id)
        assert re.fullmatch(r"-?\d{1,2}\.\d{4}", station.lat)
        assert re.fullmatch(r"-?\d{1,3}\.\d{4}", station.lon)
        assert all(0 <= amplitude < 4 and 0 <= phase < 360 for amplitude, phase in station.constituents.values())


@given(first=st.integers(0, 10**8))
@settings(max_examples=count(30, 6))
def test_no_level_is_beyond_the_bound(first: int) -> None:
    tide = Tide(load_stations())
    assert int(np.abs(tide.levels_mm(first, DAY)).max()) <= tide.highest_mm


def test_tides_are_large_at_anchorage_and_small_at_pensacola() -> None:
    stations = load_stations()
    levels = Tide(stations).levels_mm(0, 30 * DAY)
    span_m = {station.name: np.ptp(levels[:, index]) / 1000 for index, station in enumerate(stations)}
    assert 8 < span_m["Anchorage"] < 13
    assert 0.3 < span_m["Pensacola"] < 1


def test_high_water_at_san_francisco_is_when_the_moon_makes_it() -> None:
    # M2 alone: its equilibrium argument equals its phase lag at high water, so the peaks are 12.42 hours apart.
    station = next(each for each in load_stations() if each.name == "San Francisco")
    only_moon = type(station)(
        station.id, station.name, station.lat, station.lon,
        {name: pair if name == "M2" else (0.0, 0.0) for name, pair in station.constituents.items()},
    )  # fmt: skip
    level = Tide([only_moon]).levels_mm(0, 20 * DAY)[:, 0]
    assert abs(20 * 24 / int(np.abs(np.fft.rfft(level)).argmax()) - 12.42) < 0.3


def test_the_year_keeps_four_digits_however_long_the_load() -> None:
    assert len(times(STEPS_BEFORE_REPEAT - 1, 1)[0]) == 16
    assert times(STEPS_BEFORE_REPEAT, 1) == times(0, 1)
