"""What is known of a run while it goes on."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.live.events import RunStep
from sinkbench.live.state import MOST_POINTS, LastMinute, LiveRun
from sinkbench.secrets import conceal
from tests.support.liverun import CELLS, RUN, Clock, began, drained, record, samples

FIRST, SECOND = CELLS[0], CELLS[1]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def live(clock: Clock) -> LiveRun:
    live = LiveRun(clock)
    live.begin(RUN, [cell.key for cell in CELLS], 3)
    return live


def trial(live: LiveRun, number: int = 1, cell: str = FIRST.key) -> None:
    live.step(RunStep(number, 40, f"{cell}, trial {number} of 3", "trial", (cell,), 100.0))


def first(live: LiveRun) -> Any:
    return live.snapshot()["cells"][0]


def test_a_run_that_is_taken_up_again_shows_the_trials_that_it_has(live: LiveRun) -> None:
    kept = [record(rate=1000.0), record(rate=3000.0), record(rate=None, invalid=["a service died"])]
    live.begin(RUN, [cell.key for cell in CELLS], 5, kept)
    found = first(live)
    assert (found["taken"], found["of"], found["invalid"], found["records_per_second"]) == (3, 5, 1, 2000.0)
    assert [cell["state"] for cell in live.snapshot()["cells"][:2]] == ["done", "waiting"]
    assert live.snapshot()["lines"] == []


def test_every_cell_waits_until_its_turn_and_is_done_after_its_trials(live: LiveRun) -> None:
    assert [cell["state"] for cell in live.snapshot()["cells"]] == ["waiting"] * len(CELLS)
    live.step(RunStep(1, 40, "pilot", "pilot", (FIRST.key, SECOND.key)))
    assert [cell["state"] for cell in live.snapshot()["cells"][:3]] == ["pilot", "pilot", "waiting"]
    live.step(RunStep(2, 40, "limit of postgres by COPY", "limit"))
    assert first(live)["state"] == "waiting"
    for number, rate, so_far in ((1, 2000.0, 2000.0), (2, 1000.0, 1500.0), (3, 3000.0, 2000.0)):
        trial(live, number)
        assert first(live)["state"] == "running"
        live.ended(record(rate=rate))
        counts = {"taken": number, "of": 3, "invalid": 0, "lost": 0}
        assert first(live) == {"cell": FIRST.key, "state": "done", **counts, "records_per_second": so_far}


@pytest.mark.parametrize("replaced", [{"rate": 5.0}, {"rate": None, "invalid": ["it stood still"]}])
def test_a_trial_that_replaces_another_counts_in_its_place(live: LiveRun, replaced: dict[str, object]) -> None:
    live.ended(record(trial="t1", **replaced))
    live.ended(record(trial="t2", rate=9.0, replaces="t1"))
    found = first(live)
    assert (found["taken"], found["invalid"], found["records_per_second"]) == (1, 0, 9.0)


def test_a_trial_that_is_taken_again_is_not_counted_and_lost_records_make_a_bad_verdict(live: LiveRun) -> None:
    live.ended(record(pilot=True))
    assert (first(live)["taken"], first(live)["records_per_second"]) == (0, None)
    live.ended(record(lost=12))
    assert first(live)["lost"] == 12
    line = live.snapshot()["lines"][-1]
    assert line["bad"]
    assert "12 lost" in line["text"]


def test_what_is_left_runs_down_and_what_has_passed_stops_at_the_end(live: LiveRun, clock: Clock) -> None:
    assert live.snapshot()["run"] == {"name": RUN, "ending": None, "elapsed_seconds": 0, "left_seconds": None}
    clock.now += 5
    trial(live)
    clock.now += 30
    assert live.snapshot()["run"] == {"name": RUN, "ending": None, "elapsed_seconds": 35, "left_seconds": 70}
    clock.now += 500
    assert live.snapshot()["run"]["left_seconds"] == 0
    live.end("complete")
    clock.now += 500
    run = live.snapshot()["run"]
    assert (run["ending"], run["elapsed_seconds"], run["left_seconds"]) == ("complete", 535, None)
    assert first(live)["state"] == "waiting"


def test_progress_is_of_its_phase(live: LiveRun) -> None:
    trial(live)
    live.phase("loading the topic")
    live.progress(2000, 4000)
    step = live.snapshot()["step"]
    assert (step["phase"], step["done"], step["records"]) == ("loading the topic", 2000, 4000)
    live.phase("draining")
    assert live.snapshot()["step"]["done"] is None


def test_readings_are_the_last_minute_of_the_step(live: LiveRun) -> None:
    began(live)
    drained(live, 100)
    found = live.snapshot()["readings"]
    assert len(found["seconds"]) == MOST_POINTS
    assert found["seconds"][-1] - found["seconds"][0] == pytest.approx(59.5)
    assert set(found["cpu"]) == {"connect", "postgres", "pgbouncer", "kafka", "controller"}
    assert (found["cpu"]["connect"][-1], found["clients"][-1], found["servers"][-1]) == (pytest.approx(0.6), 40, 9)
    assert all(rate is not None and 60_000 < rate < 100_000 for rate in found["rate"])
    live.step(RunStep(2, 40, "next", "trial", (SECOND.key,)))
    assert live.snapshot()["readings"]["seconds"] == []


def test_what_could_not_be_read_is_not_known() -> None:
    course = LastMinute()
    one, two, three = (replace(sample, seconds=float(at)) for at, sample in enumerate(samples(0.75)))
    course.add(one)
    course.add(replace(two, stored=None, pool_clients=None, pool_servers=None, backends=None, cpu_seconds={}))
    course.add(replace(three, stored=4000))
    found = course.readings()
    # Of the rate over both intervals one half is known in the end.
    assert (found["rate"], found["lag"][1], found["clients"][1]) == ([None, None, 2000], None, None)
    assert [values[1] for values in found["cpu"].values()] == [None] * len(found["cpu"])


@given(
    gaps=st.lists(st.floats(0, 3), max_size=200),
    stored=st.lists(st.none() | st.integers(0, 10**9), min_size=200, max_size=200),
    used=st.lists(st.none() | st.floats(0, 1e6), min_size=200, max_size=200),
)
def test_any_samples_give_series_of_one_length_that_are_never_negative(
    gaps: list[float], stored: list[int | None], used: list[float | None]
) -> None:
    course = LastMinute()
    (bare,) = samples(0.25)
    now = 0.0
    for gap, count, seconds in zip(gaps, stored, used, strict=False):
        now += gap
        course.add(replace(bare, seconds=now, stored=count, cpu_seconds={"kafka": seconds, "connect-1": 1.0}))
    found = course.readings()
    every = [found["rate"], found["lag"], found["clients"], found["servers"], *found["cpu"].values()]
    assert {len(values) for values in every} <= {len(found["seconds"])}
    assert len(found["seconds"]) <= MOST_POINTS
    assert found["seconds"] == sorted(found["seconds"])
    assert all(value is None or value >= 0 for values in every for value in values)


EVENTS = st.sampled_from(["say", "step", "phase", "progress", "sample", "ended", "pilot", "look"])


@given(st.lists(EVENTS, max_size=60))
def test_the_news_put_together_are_the_whole(happenings: list[str]) -> None:
    clock = Clock()
    live = LiveRun(clock)
    live.begin(RUN, [cell.key for cell in CELLS], None)
    mirror: dict[str, object] = {}
    seen, readings = 0, samples(60)
    for number, what in enumerate(happenings):
        clock.now += 1
        if what == "say":
            live.say("line")
        elif what == "step":
            trial(live, number, CELLS[number % len(CELLS)].key)
        elif what == "phase":
            live.phase(str(number))
        elif what == "progress":
            live.progress(number, 100)
        elif what == "sample":
            live.sample(next(readings))
        elif what in ("ended", "pilot"):
            live.ended(record(CELLS[number % len(CELLS)], pilot=what == "pilot"))
        else:
            seen, news = live.news(seen)
            mirror.update(news)
    live.end("complete")
    seen, news = live.news(seen)
    mirror.update(news)
    assert mirror == live.snapshot()
    assert live.news(seen)[1] == {}
    assert json.loads(json.dumps(mirror, allow_nan=False)) == mirror


def test_no_secret_gets_into_it(live: LiveRun) -> None:
    secret = conceal("hunter2-hunter2")
    live.begin(f"run {secret}", [f"postgres/{secret}@3x1"], 3)
    live.say(f"password {secret}")
    live.step(RunStep(1, 2, f"trial of {secret}", "trial", (f"postgres/{secret}@3x1",)))
    live.phase(f"asking {secret}")
    live.ended(record(rate=None, invalid=[f"refused {secret}"]))
    whole = json.dumps(live.snapshot())
    assert secret not in whole
    assert whole.count("***") == 6
