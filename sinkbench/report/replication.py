"""The verdicts on published claims as one HTML page."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from sinkbench.claims.lines import last_lines, row_of
from sinkbench.claims.verdict import Verdict
from sinkbench.report.page import html_of
from sinkbench.report.parts import Opening, PageSection, Table
from sinkbench.runs.store import write_text

HEADERS = ("claim", "source", "published", "measured here", "verdict", "what is different here", "command")


def write_replication(verdicts: Sequence[Verdict], to: Path) -> None:
    """Writes the page to the file `to`: a table for each article. Raises UserError if it cannot be written."""
    sections = []
    for article, found in groupby(verdicts, key=lambda each: each.claim.article):
        rows = [_row(each) for each in found]
        caption = f"{rows[0][1].partition(',')[0]}: what it says, and what the newest run of each plan has measured"
        sections.append(PageSection(article, article, [Table(HEADERS, rows, caption, sentences=range(1, 6))]))
    opening = Opening("Do the published findings hold here?", last_lines(verdicts))
    write_text(to, html_of("Published findings", ["Written by sinkbench replicate --html."], opening, sections))


def _row(found: Verdict) -> tuple[str, ...]:
    claim, source = found.claim, found.claim.source
    name, published, measured, said = row_of(found)
    where = ", ".join(filter(None, (source.document, source.section, source.figure)))
    command = found.command or (f"sinkbench race {claim.plan}" if claim.plan else "")
    return name, where, published, measured, said, claim.different_here or "", command
