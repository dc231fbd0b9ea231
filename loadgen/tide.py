"""Real NOAA CO-OPS stations, and their tides from harmonic constituents.

`stations.json` has NOAA's data (public domain) of 114 stations: id, name, position, and amplitude (m) and Greenwich
phase lag (degrees) of the eight largest astronomical constituents. A level is their sum above mean sea level. NOAA's
prediction has 29 more constituents, and changing nodal corrections; here they are those of the load's first time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources

import numpy as np
import numpy.typing as npt

INTERVAL_MINUTES = 6
"""NOAA's interval between two levels of a gauge."""

STEPS_BEFORE_REPEAT = 600_000_000
"""After this many levels of a gauge (6,800 years) its times begin again, so that the year keeps four digits."""

SPEED_DEGREES_PER_HOUR = {
    "M2": 28.9841042, "S2": 30.0, "N2": 28.4397295, "K2": 30.0821373,
    "K1": 15.0410686, "O1": 13.9430356, "P1": 14.9589314, "Q1": 13.3986609,
}  # fmt: skip


@dataclass(frozen=True)
class Station:
    """A station as NOAA publishes it; constituents are {name: (amplitude m, phase degrees)}."""

    id: str
    name: str
    lat: str
    lon: str
    constituents: dict[str, tuple[float, float]]


def load_stations() -> list[Station]:
    rows = json.loads(resources.files("loadgen").joinpath("stations.json").read_text(encoding="utf-8"))
    return [Station(**row) for row in rows]


class Tide:
    def __init__(self, stations: list[Station], first_t: str) -> None:
        """`first_t` is "YYYY-MM-DD HH:MM" in UTC, since the phases are Greenwich's."""
        moment = datetime.strptime(first_t, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
        self._first = np.datetime64(first_t.replace(" ", "T"), "m")
        argument, factor = _astronomical(moment)
        names = list(SPEED_DEGREES_PER_HOUR)
        pairs = np.array([[station.constituents[name] for name in names] for station in stations])
        self._amplitude = pairs[:, :, 0] * np.array([factor[name] for name in names])
        self._phase = np.radians(np.array([argument[name] for name in names]) - pairs[:, :, 1])
        self._speed = np.radians([SPEED_DEGREES_PER_HOUR[name] for name in names])
        self.highest_mm = int(np.ceil(self._amplitude.sum(axis=1).max() * 1000))

    def levels_mm(self, first_step: int, steps: int) -> npt.NDArray[np.int64]:
        """Levels in whole mm above mean sea level, shape (steps, stations), within +-`highest_mm`."""
        hours = self._steps(first_step, steps) * (INTERVAL_MINUTES / 60)
        angle = hours[:, None] * self._speed
        # cos(a + b) = cos a cos b - sin a sin b: a product of two small tables replaces one cosine for every station,
        # step and constituent. A matrix product would start a thread on every core, which spins between calls.
        level = np.einsum("tc,sc->ts", np.cos(angle), self._amplitude * np.cos(self._phase))
        level -= np.einsum("tc,sc->ts", np.sin(angle), self._amplitude * np.sin(self._phase))
        whole: npt.NDArray[np.int64] = np.rint(level * 1000).astype(np.int64)
        return whole

    def times(self, first_step: int, steps: int) -> list[str]:
        minutes = (self._steps(first_step, steps) * INTERVAL_MINUTES).astype("timedelta64[m]")
        return [text.replace("T", " ") for text in np.datetime_as_string(self._first + minutes).tolist()]

    @staticmethod
    def _steps(first_step: int, steps: int) -> npt.NDArray[np.int64]:
        counted: npt.NDArray[np.int64] = np.arange(first_step, first_step + steps, dtype=np.int64)
        return np.remainder(counted, STEPS_BEFORE_REPEAT)


def _astronomical(moment: datetime) -> tuple[dict[str, float], dict[str, float]]:
    """Returns each constituent's equilibrium argument V0 + u (degrees) and nodal factor f.

    Arguments after Schureman (Manual of Harmonic Analysis and Prediction of Tides, 1941), nodal corrections after Pugh
    (Tides, Surges and Mean Sea-Level, 1987, table 4:3), mean longitudes after Meeus (Astronomical Algorithms).
    """
    since_j2000 = moment - datetime(2000, 1, 1, 12, tzinfo=UTC)
    centuries = since_j2000.total_seconds() / (36525 * 86400)
    moon = 218.3164477 + 481267.88123421 * centuries
    sun = 280.46646 + 36000.76983 * centuries
    perigee = 83.3532465 + 4069.0137287 * centuries
    node = np.radians(125.04452 - 1934.136261 * centuries)
    hour = 15 * (moment.hour + moment.minute / 60)
    sine, cosine = float(np.sin(node)), float(np.cos(node))
    argument = {
        "M2": 2 * hour + 2 * sun - 2 * moon - 2.1 * sine,
        "S2": 2 * hour,
        "N2": 2 * hour + 2 * sun - 3 * moon + perigee - 2.1 * sine,
        "K2": 2 * hour + 2 * sun - 17.7 * sine,
        "K1": hour + sun + 90 - 8.9 * sine,
        "O1": hour + sun - 2 * moon + 270 + 10.8 * sine,
        "P1": hour - sun + 270,
        "Q1": hour + sun - 3 * moon + perigee + 270 + 10.8 * sine,
    }
    lunar, declination = 1 - 0.037 * cosine, 1.009 + 0.187 * cosine
    factor = {
        "M2": lunar, "S2": 1.0, "N2": lunar, "K2": 1.024 + 0.286 * cosine,
        "K1": 1.006 + 0.115 * cosine, "O1": declination, "P1": 1.0, "Q1": declination,
    }  # fmt: skip
    return argument, factor
