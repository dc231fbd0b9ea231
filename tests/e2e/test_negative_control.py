"""The negative control: every kind of verdict can fail. A hand spoils what a race has stored, and it says just that."""

import re
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

from sinkbench.analysis.audit import SeqAudit, VersionAudit
from sinkbench.analysis.content import Content
from sinkbench.cli.main import ENDING_SIGNALS, main
from sinkbench.errors import EXIT_CHECK_FAILED
from sinkbench.stack.local import LocalStack
from sinkbench.trial import audit
from sinkbench.trial.resources import Resources
from tests.e2e.hands import HANDS, InPostgres
from tests.support.latest import summary_of, trials_of

# Of many records PostgreSQL's multiples of a number are compared, and 0 is one of every number.
SEQ = 0
PIPELINES = {"pg": "postgres/jdbc", "es": "elasticsearch/camel-index"}
# So few records that they do not take long, and so many readings that there is a rate.
PLAN = """
pipelines: [PIPELINES]
trials: 1
load: {keys: 1_000}
probe_interval_ms: 50
drain: {compiling_percent: 100, window_seconds: 2, pilot_seconds: 0.4, warm_up_seconds: 0.4}
"""


@dataclass(frozen=True)
class Said:
    """What a race is to say of a cell, and nothing else: the audit's counts that are not 0, None without an audit; the
    codes of what is wrong; the last word of its row; a pattern of the line below the table, if there is to be one."""

    counts: dict[str, int] | None
    codes: tuple[str, ...]
    word: str
    line: str | None


DELETES, DOUBLES, CHANGES, NOTHING = "pg deletes one", "es doubles one", "es changes one", "es does nothing"
UNCOUNTED, UNCOMPARED = "pg hides at the count", "pg hides after it"
# Other tests audit either sink for each of these; here is what a race makes of it.
SAID = {
    DELETES: Said({"lost": 1}, ("lost", "invalid"), "LOST", "LOST 1; invalid: [0-9,]+ put .*"),
    DOUBLES: Said({"duplicates": 1}, ("duplicated",), "DUPLICATED", "DUPLICATED 1"),
    CHANGES: Said({"altered": 1}, ("altered",), "ALTERED", "ALTERED 1 of [0-9,]+ compared: .*"),
    NOTHING: Said({}, (), "ok", None),
    UNCOUNTED: Said(None, ("invalid",), "invalid", "invalid: .*"),
    UNCOMPARED: Said({}, (), "checked", ".*content not checked: no record was compared .*"),
}
# Of so short a drain; it is no fault.
UNSTEADY = "unsteady"
SPOILT = ("lost", "duplicates", "altered", "foreign", "dead_letters")


@pytest.fixture
def hands(stack: LocalStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hands: each acts on the cell that is called after it, when the connector is gone and before the audit."""
    count, compare = audit.counted, audit.stored_content

    def counted(own: Resources) -> SeqAudit | VersionAudit:
        if "canary" in own.names.trial:
            return count(own)
        hand = HANDS[own.cell.sink](stack, own.names.target)
        acts = {DELETES: "delete", DOUBLES: "double", CHANGES: "change"}
        does = own.cell.label
        if does in acts:
            getattr(hand, acts[does])(SEQ)
        with hand.hidden() if does == UNCOUNTED else nullcontext():
            return count(own)

    def content(own: Resources) -> Content | None:
        hidden = own.cell.label == UNCOMPARED and "canary" not in own.names.trial
        with InPostgres(stack, own.names.target).hidden() if hidden else nullcontext():
            return compare(own)

    monkeypatch.setattr(audit, "counted", counted)
    monkeypatch.setattr(audit, "stored_content", content)


@pytest.fixture
def _signals() -> Iterator[None]:
    """The command catches signals, and the tests go on after it."""
    before = {each: signal.getsignal(each) for each in ENDING_SIGNALS}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.mark.long
@pytest.mark.usefixtures("hands", "_signals")
def test_a_race_says_of_each_cell_just_what_a_hand_has_done_to_its_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = SAID
    entries = [f"{{pipeline: {PIPELINES[label.partition(' ')[0]]}, label: {label}}}" for label in wanted]
    (tmp_path / "mine.yaml").write_text(PLAN.replace("PIPELINES", ", ".join(entries)))
    code = main(["race", "mine.yaml"])
    printed = "".join(capsys.readouterr())
    assert code == EXIT_CHECK_FAILED, printed
    assert main(["show", "--all"]) == 0
    printed = "".join(capsys.readouterr())
    cells = {cell["label"]: cell for cell in summary_of(tmp_path)["cells"]}
    trials = {trial["cell"].partition("@")[0]: trial for trial in trials_of(tmp_path)}

    # What the record of each trial says.
    audits = {label: trial["audit"] for label, trial in trials.items()}
    found = {
        label: None if audit is None else {name: audit[name] for name in SPOILT if audit[name]}
        for label, audit in audits.items()
    }
    assert found == {label: said.counts for label, said in wanted.items()}, printed
    kinds = ("lost", "duplicated", "altered")
    ranges = {label: tuple(trial[f"{kind}_ranges"] for kind in kinds) for label, trial in trials.items()}
    named = {DELETES: ("0", "", ""), DOUBLES: ("", "0", ""), CHANGES: ("", "", "0")}
    assert ranges == {label: named.get(label, ("", "", "")) for label in wanted}
    compared = {label for label, audit in audits.items() if audit is not None and audit["checked"] > 1}
    assert compared == {label for label in wanted if not label.endswith((UNCOUNTED, UNCOMPARED))}

    # What the summary says.
    codes = {label: tuple(fault["code"] for fault in cell["faults"]) for label, cell in cells.items()}
    assert codes == {label: said.codes for label, said in wanted.items()}, printed
    assert {label: cell["passed"] for label, cell in cells.items()} == {
        label: not said.codes for label, said in wanted.items()
    }

    # What is printed.
    rows = {label: re.search(rf"^{label} +3 \(1\) .* ([^ *\n]+)(?: \*)?$", printed, re.MULTILINE) for label in wanted}
    words = {label: row[1] if row else None for label, row in rows.items()}
    # The word of a cell that passed.
    steady = {label: "ok" if word == UNSTEADY else word for label, word in words.items()}
    assert steady == {label: said.word for label, said in wanted.items()}, printed
    faulty = re.compile(r"(?:.*, )?(?:LOST|DUPLICATED|ALTERED|FOREIGN|invalid|content not checked).*")
    for label, said in wanted.items():
        lines = [line.removeprefix(f"{label}: ") for line in printed.splitlines() if line.startswith(f"{label}: ")]
        spoilt = [line for line in lines if faulty.fullmatch(line)]
        assert said.line is None or any(re.fullmatch(said.line, line) for line in spoilt), printed
        assert said.line is not None or not spoilt, printed
