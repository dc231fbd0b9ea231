"""What became of pipelines under faults, as text and as a page."""

import pytest

from sinkbench.plan.cells import expand
from sinkbench.results import Audit, Recovery
from sinkbench.summary.cells import summarize
from sinkbench.tables.cells import render
from sinkbench.tables.faults import fault_line, matrix_table
from tests.support.trials import plan_of, run_summary, trial

KILL = {"what": "kill", "target": "pgbouncer", "pipelines": ["postgres/jdbc"]}
FAULTS = {"mode": "faults", "faults": [{"what": "none"}, {"what": "refuse"}, KILL]}
LOAD = {"records_per_second": 1_000, "seconds": 20}
PLAN = plan_of("postgres/jdbc", "elasticsearch/camel-bulk", trials=1, sustain=LOAD, **FAULTS)
CELLS = expand(PLAN, 3)
CLEAN = Audit(produced=20_000, stored=20_000, lost=0, duplicates=0)
GOOD = Recovery(
    target="postgres", recovered=True, rate_seconds=0.0, first_record_seconds=0.0, began_seconds=6.0, ended_seconds=6.0
)
LOST = Audit(produced=20_000, stored=18_800, lost=1_234, duplicates=34)


def test_a_pipeline_that_stores_nothing_any_more_has_not_recovered_without_a_person() -> None:
    silent = Recovery(target="elasticsearch", recovered=True, stuck_seconds=8.25)
    lost = Audit(produced=20_000, stored=11_000, lost=9_000, duplicates=0)
    cell = CELLS[0]
    text = render(run_summary(*summarize([cell], [trial(None, cell, recovery=silent, audit=lost)])))
    assert [each for each in ("1 stored nothing any more", "nothing since") if each not in text] == []
    assert [each for each in ("all recovered", "no break") if each in text] == []


@pytest.mark.parametrize(("seconds", "said"), [(10.8, ["each once", "uneven 10.8 s"]), (0.0, ["each once"])])
def test_what_nothing_has_broken_does_not_come_back(seconds: float, said: list[str]) -> None:
    calm = Recovery(target="", recovered=True, rate_seconds=seconds, stuck_seconds=5.0)
    (cell,) = CELLS[:1]
    summary = run_summary(*summarize([cell], [trial(None, cell, recovery=calm, audit=CLEAN)]))
    assert [str(cell) for cell in matrix_table(summary).columns[1].cells] == ["\n".join(said)]
    assert ("uneven: without a fault" in render(summary)) is (seconds > 0)
    assert fault_line(summary) == "Nothing was broken."


def printed(recovery: Recovery | None, audit: Audit | None) -> str:
    """What is printed of a run whose last cell, of five, had this, and another one with a fault has lost records."""
    audits = [LOST if cell.key == "elasticsearch/camel-bulk@3x1@1000!refuse sink" else CLEAN for cell in CELLS]
    calm = GOOD.model_copy(update={"target": ""})
    known = [calm if cell.fault is None or cell.fault.what == "none" else GOOD for cell in CELLS]
    seen = zip(CELLS, known, audits, strict=True)
    taken = [trial(None, cell, recovery=back, audit=stored) for cell, back, stored in seen]
    taken[-1] = taken[-1].model_copy(update={"recovery": recovery, "audit": audit, "not_audited": "no answer"})
    summary = run_summary(*summarize(CELLS, taken))
    return f"{fault_line(summary)}\n{render(summary)}"


@pytest.mark.parametrize(
    ("recovery", "audit", "said"),
    [
        (GOOD, None, "of 1 it is not known, since not every trial could be audited"),
        (None, None, "1 is invalid, or not taken yet"),
        (GOOD.model_copy(update={"recovered": False}), CLEAN, "1 did not recover at all"),
    ],
)
def test_what_is_not_known_and_what_never_recovered_is_in_no_good_count(
    recovery: Recovery | None, audit: Audit | None, said: str
) -> None:
    text = printed(recovery, audit)
    assert said in text
    assert ("all recovered" in text) is (recovery == GOOD)
    assert (audit is None) is text.startswith("2 of 3 cells with a fault lost no record; ")


def test_a_drain_says_when_it_flowed_again_and_nothing_of_rates() -> None:
    backlog = PLAN.sustain.model_copy(update={"backlog_records": 90_000, "records_per_second": None})
    cells = expand(PLAN.model_copy(update={"sustain": backlog, "faults": PLAN.faults[:2]}), 3)
    flows = Recovery(target="postgres", recovered=True, first_record_seconds=7.25, standstill_seconds=7.25)
    never_still, down = (
        flows.model_copy(update=each) for each in ({"first_record_seconds": 0.0}, {"recovered": False})
    )
    found = [flows, never_still, down, flows]
    taken = [trial(None, cell, recovery=each, audit=CLEAN) for cell, each in zip(cells, found, strict=True)]
    text = render(run_summary(*summarize(cells, taken)))
    for shown in ("flows 7.2 s", "no break", "NOT RECOVERED", "flows: until records came again"):
        assert shown in text, text
    assert [each for each in ("rate not seen", "back:") if each in text] == []
