"""The verdicts on published claims as one HTML page."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from sinkbench.claims.lines import last_lines, row_of
from sinkbench.claims.verdict import Outcome, Verdict
from sinkbench.report.page import html_of
from sinkbench.report.parts import Lines, Opening, PageSection, Table
from sinkbench.runs.store import write_text

HEADERS = ("claim", "section", "published", "measured here", "verdict", "what is different here", "command")


def write_replication(verdicts: Sequence[Verdict], to: Path) -> None:
    """Writes the page: what is decided, then a table for each article. Raises UserError if `to` cannot be written."""
    sections = []
    for article, found in groupby(verdicts, key=lambda each: each.claim.article):
        own = list(found)
        documents = "; ".join(dict.fromkeys(each.claim.source.document for each in own))
        table = Table(HEADERS, [_row(each) for each in own], documents, sentences=range(2, 6), meanings={})
        sections.append(PageSection(article, article, [table]))
    totals, *missing = last_lines(verdicts)
    decided = [row_of(each) for each in verdicts if each.outcome is not Outcome.UNTOLD]
    lead = [totals, *(f"{verdict}: {published}; here: {measured}" for _, published, measured, verdict in decided)]
    asides = [PageSection("missing", "Runs that would tell more", [Lines(missing[1:])])] if missing else []
    opening = Opening("Do the published findings hold here?", lead, asides=asides)
    write_text(to, html_of("Published findings", ["By the newest run of each plan."], opening, sections))


def _row(found: Verdict) -> tuple[str, ...]:
    claim, source = found.claim, found.claim.source
    name, *texts = row_of(found)
    return (
        name,
        ", ".join(filter(None, (source.section, source.figure))),
        *texts,
        claim.different_here or "",
        claim.command or "",
    )
