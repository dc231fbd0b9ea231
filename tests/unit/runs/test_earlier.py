"""Runs of a sinkbench that kept texts without codes are read as before."""

from __future__ import annotations

import json
from pathlib import Path

from sinkbench.errors import ReasonCode
from sinkbench.results import CellSummary, TrialRecord
from sinkbench.runs.reader import load_summary
from sinkbench.tables.columns import in_short
from tests.support.trials import CELL, CLEAN, cell_summary, run_summary, trial


def earlier(record: TrialRecord | CellSummary, **texts: object) -> dict[str, object]:
    """What the files of an earlier sinkbench hold."""
    written = json.loads(record.model_dump_json())
    return {key: value for key, value in written.items() if key not in ("reasons", "faults")} | texts


def test_the_texts_of_a_trial_become_reasons_with_the_codes_that_something_is_decided_on() -> None:
    texts = [
        "not done after 300 s, at 302 of 1,000 records",
        "too few samples between 10 % and 90 % of the records; ask for a longer window_seconds",
        "postgres died during the trial",
    ]
    found = TrialRecord.model_validate(earlier(trial(), invalid=texts))
    assert [reason.code for reason in found.reasons] == [
        ReasonCode.TIMED_OUT,
        ReasonCode.TOO_SHORT,
        ReasonCode.UNKNOWN,
    ]
    assert found.invalid == texts


def test_a_verdict_in_words_is_shown_as_short_as_before() -> None:
    words = "16 of 24 tasks FAILED: too many clients already; LOST 1,500; 2 trials NOT AUDITED"
    found = CellSummary.model_validate(earlier(cell_summary(), verdict=words, passed=False))
    assert found.verdict == words
    assert in_short(found) == "FAILED\nLOST\nNOT AUDITED"
    assert in_short(CellSummary.model_validate(earlier(cell_summary(), verdict="ok"))) == "ok"


def test_trials_without_an_audit_are_counted_in_a_run_that_did_not_count_them(tmp_path: Path) -> None:
    cell = cell_summary("postgres/jdbc", 1_000, tasks=24, trials=2, audit=CLEAN)
    taken = [trial(), trial(None, audit=None, invalid=["connect-2 died"]), trial(1.0, audit=None, pilot=True)]
    written = run_summary(cell).model_dump(mode="json")
    for each in written["cells"]:
        del each["not_audited"]
    (tmp_path / "summary.json").write_text(json.dumps(written))
    (tmp_path / "trials.jsonl").write_text("".join(f"{each.model_dump_json()}\n" for each in taken))
    (found,) = load_summary(tmp_path).cells
    assert (found.cell, found.not_audited) == (CELL.key, 1)
    (tmp_path / "trials.jsonl").write_text("damaged\n" * 3)
    assert load_summary(tmp_path).cells[0].not_audited == 0


def test_what_is_written_is_read_again() -> None:
    taken = trial(invalid=["it died"])
    assert TrialRecord.model_validate_json(taken.model_dump_json()) == taken
    assert json.loads(taken.model_dump_json())["invalid"] == ["it died"]
