"""The course of a trial in few steps, and files of samples that cannot be used."""

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sinkbench.report.timeline import SampleColumns, course_of, read_samples
from tests.support.present import present

NAN = math.nan


def readings(seconds: list[float], stored: list[float], lag: list[float] | None = None) -> SampleColumns:
    return SampleColumns(np.array(seconds), np.array(stored), np.array(lag or [NAN] * len(seconds)))


def test_all_that_was_stored_is_in_the_steps() -> None:
    draw = np.random.default_rng(2)
    times = np.cumsum(draw.uniform(0.1, 0.9, 200))
    stored = np.cumsum(draw.integers(0, 900, 200)).astype(float)
    course = present(course_of(SampleColumns(times, stored, np.full(200, NAN)), most=20))
    assert_allclose(np.nansum(course.records_per_second) * course.step_seconds, stored[-1] - stored[0])


def test_the_lag_of_a_step_is_its_largest_and_unknown_without_any() -> None:
    course = present(course_of(readings([0, 0.2, 0.4, 0.6, 1.0], [0, 1, 2, 3, 4], [5, 9, NAN, NAN, NAN]), most=120))
    assert course.lag[0] == 9
    assert math.isnan(course.lag[1])


def test_the_lag_is_what_is_in_the_topic_and_not_in_the_sink_if_both_were_read(tmp_path: Path) -> None:
    file = tmp_path / "s.csv"
    file.write_text("seconds,stored,uncommitted,in_topic\n0,0,50,40\n1,30,50,40\n2,41,50,40\n3,,50,40\n4,40,50,\n")
    found = read_samples(file)
    assert isinstance(found, SampleColumns)
    assert_allclose(found.lag, [40, 10, 0, NAN, NAN])
    file.write_text("seconds,stored,uncommitted\n0,0,50\n1,30,20\n")
    found = read_samples(file)
    assert isinstance(found, SampleColumns)
    assert_allclose(found.lag, [50, 20])


def test_a_gap_in_the_samples_has_no_rate() -> None:
    course = present(course_of(readings([0, 0.5, 1.0, 3.0, 3.5, 4.0], [0, 5, 10, 30, 35, 40]), most=120))
    assert np.isnan(course.records_per_second).tolist() == [False, False, False, True, True, True, False, False]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "lacks the columns seconds and stored"),
        ("seconds,stored\n0,1\n", "fewer than two samples"),
        ("seconds,stored\n0,1\nsoon,2\n", "is damaged"),
        ("seconds,stored\n0,1\n1,\x00\n", "is not UTF-8 text"),
    ],
)
def test_a_file_of_samples_that_cannot_be_used_says_why(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    found = read_samples(tmp_path / "a.csv")
    assert isinstance(found, str)
    assert why in found
    assert (read_samples(tmp_path / "b.csv"), read_samples(tmp_path)) == ("is missing", "is a folder; name a file")


def test_empty_places_are_unknown_and_a_torn_last_row_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("seconds,stored,uncommitted,x\n0,1,5,\n1,,,\n2,3,7,\n2.5,4")
    found = read_samples(tmp_path / "a.csv")
    assert isinstance(found, SampleColumns)
    assert_allclose(found.stored, [1, NAN, 3])
    assert_allclose(found.lag, [5, NAN, 7])
