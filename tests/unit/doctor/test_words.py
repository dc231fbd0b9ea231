"""What is printed: findings with all of their parts, what was looked at, what was not, and what --watch tells."""

import json
import re

from sinkbench.doctor.diagnosis import DOCS, Diagnosis, Found, Rule, as_values, changes_since, lines, that_stays
from sinkbench.doctor.facts import Area
from sinkbench.doctor.rules import RULES
from sinkbench.metrics import anchor
from sinkbench.settings import CHECKOUT
from tests.support.doctorfacts import diagnosis, facts, jdbc


def finding(code: str, subject: str, what: str = "it is so", *, passes: bool = False) -> Found:
    return Found(subject, what, "because", "do this", rule=Rule(code, (), lambda facts: (), passes))


def test_a_finding_is_printed_with_all_of_its_parts() -> None:
    seen = diagnosis(facts(connectors=(jdbc(failed=2),)))
    said = "\n".join(lines(seen))
    assert "invalidates a race: jdbc: 2 of 3 tasks FAILED" in said
    assert "\n    why: what they should read stays unread" in said
    assert "\n    fix: remove the cause" in said
    assert f"\n    {DOCS}#failed-tasks" in said
    assert f"{len(RULES)} of {len(RULES)} rules saw all that they need: 1 invalidates a race" in said
    # A program gets the same.
    found = json.loads(json.dumps(as_values(seen)))
    assert found["invalid"] is True
    assert [each["code"] for each in found["findings"]] == ["failed-tasks"]


def test_nothing_found_says_what_was_looked_at_and_what_was_not() -> None:
    *_, last, unseen = lines(diagnosis(facts(unseen={Area.DISK: "these machines belong to others"})))
    assert last == f"{len(RULES) - 1} of {len(RULES)} rules saw all that they need: nothing found"
    assert unseen == "not checked: little-disk: these machines belong to others"


def test_watching_tells_what_is_new_and_what_is_gone_but_no_figures_that_change() -> None:
    before = Diagnosis((finding("a", "x", "3"), finding("b", "x"), finding("c", "x")), ("a", "b", "c"))
    after = Diagnosis((finding("a", "x", "4"), finding("a", "y")), ("a", "b"), {"c": "it died"})
    new, gone, told = changes_since(before, after)
    assert [each.key for each in new] == [("a", "y")]
    # What is not checked any more may be there still.
    assert [each.key for each in gone] == [("b", "x")]
    assert told == ["not checked any more: c: it died"]
    assert changes_since(after, before)[2] == ["checked again: c"]
    assert changes_since(after, after) == ([], [], [])


def test_watching_tells_of_what_may_pass_when_it_is_there_twice() -> None:
    stays, passes = finding("a", "x"), finding("b", "x", passes=True)
    nothing, both = Diagnosis((), ("a", "b")), Diagnosis((stays, passes), ("a", "b"))
    assert that_stays(nothing, both).findings == (stays,)
    assert that_stays(both, both) == both
    assert that_stays(both, nothing) == nothing
    # While Connect deals tasks out they may be uneven for a moment.
    assert [rule.code for rule in RULES if rule.passes] == ["uneven-tasks"]


PAGE = (CHECKOUT / DOCS).read_text(encoding="utf-8")


def test_the_page_has_a_heading_for_each_rule_and_no_other() -> None:
    codes = [rule.code for rule in RULES]
    assert re.findall(r"^### (.+)$", PAGE, re.MULTILINE) == codes == [anchor(code) for code in codes]
