"""NOAA CO-OPS stations, and tides from their harmonic constituents.

`stations.json` has NOAA's data (public domain) of 114 stations: id, name, position, and amplitude (m) and Greenwich
phase lag (degrees) of the eight largest astronomical constituents. A level is their sum above mean sea level. NOAA's
prediction has 29 more constituents, and changing nodal corrections; here they are those of the first level."""

import json
from dataclasses import dataclass
from importlib import resources

import numpy as np
import numpy.typing as npt

FIRST_T = np.datetime64("2026-01-01T00:00", "m")
"""Time of each gauge's first level, in UTC."""
INTERVAL_MINUTES = 6
"""NOAA's interval between two levels of a gauge."""
STEPS_BEFORE_REPEAT = 600_000_000
"""After this many levels of a gauge (6,800 years) its times begin again, so that the year keeps four digits."""

# Speed (degrees an hour), and at FIRST_T the equilibrium argument V0 + u (degrees, after Schureman, Manual of Harmonic
# Analysis and Prediction of Tides, 1941) and the nodal factor f (after Pugh, Tides, Surges and Mean Sea-Level, 1987).
CONSTITUENTS = {
    "M2": (28.9841042, 66.045133, 0.964777), "S2": (30.0, 0.0, 1.0),
    "N2": (28.4397295, 59.37638, 0.964777), "K2": (30.0821373, 206.753129, 1.296262),
    "K1": (15.0410686, 13.391875, 1.115476), "O1": (13.9430356, 51.428423, 1.187017),
    "P1": (14.9589314, 349.333384, 1.0), "Q1": (13.3986609, 44.75967, 1.187017),
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
    def __init__(self, stations: list[Station]) -> None:
        pairs = np.array([[station.constituents[name] for name in CONSTITUENTS] for station in stations])
        speed, argument, factor = np.array(list(CONSTITUENTS.values())).T
        self._amplitude, self._phase = pairs[:, :, 0] * factor, np.radians(argument - pairs[:, :, 1])
        self._speed = np.radians(speed)
        self.highest_mm = int(np.ceil(self._amplitude.sum(axis=1).max() * 1000))

    def levels_mm(self, first_step: int, steps: int) -> npt.NDArray[np.int64]:
        """Levels in whole mm above mean sea level, shape (steps, stations), within +-`highest_mm`."""
        angle = (_steps(first_step, steps) * (INTERVAL_MINUTES / 60))[:, None] * self._speed
        # cos(a + b) = cos a cos b - sin a sin b: a product of two small tables replaces one cosine for every station,
        # step and constituent. A matrix product would start a thread on every core, which spins between calls.
        level = np.einsum("tc,sc->ts", np.cos(angle), self._amplitude * np.cos(self._phase))
        level -= np.einsum("tc,sc->ts", np.sin(angle), self._amplitude * np.sin(self._phase))
        whole: npt.NDArray[np.int64] = np.rint(level * 1000).astype(np.int64)
        return whole


def times(first_step: int, steps: int) -> list[str]:
    minutes = (_steps(first_step, steps) * INTERVAL_MINUTES).astype("timedelta64[m]")
    return [text.replace("T", " ") for text in np.datetime_as_string(FIRST_T + minutes).tolist()]


def _steps(first_step: int, steps: int) -> npt.NDArray[np.int64]:
    counted: npt.NDArray[np.int64] = np.arange(first_step, first_step + steps, dtype=np.int64)
    return np.remainder(counted, STEPS_BEFORE_REPEAT)
