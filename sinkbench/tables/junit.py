"""A run as JUnit's XML, for a CI's list of tests: a case for each cell's checks, and one for each threshold."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from loadgen.reading import printable
from sinkbench.results import RunSummary
from sinkbench.secrets import redacted
from sinkbench.summary.thresholds import outcomes


def junit(summary: RunSummary) -> str:
    """The run as a test suite; a threshold that is not decided is skipped, which is neither passed nor failed."""
    cases = [(cell.cell, "checks", cell.passed if cell.trials else None, cell.verdict) for cell in summary.cells]
    cases += [(each.cell, f"{each.figure} {each.bound}", each.passed, each.line[2:]) for each in outcomes(summary)]
    verdicts = [passed for _, _, passed, _ in cases]
    counts = {"tests": len(cases), "failures": verdicts.count(False), "skipped": verdicts.count(None)}
    numbers = {name: str(count) for name, count in counts.items()}
    suite = ET.Element("testsuite", {"name": _text(summary.run), "errors": "0", **numbers})
    for cell, name, passed, line in cases:
        case = ET.SubElement(suite, "testcase", {"classname": _text(cell), "name": _text(name)})
        if passed is not True:
            ET.SubElement(case, "skipped" if passed is None else "failure", {"message": _text(line)})
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, "unicode") + "\n"


def _text(text: str) -> str:
    """A text without secrets and without characters that XML cannot hold."""
    return printable(redacted(text)).encode("utf-8", "replace").decode("utf-8")
