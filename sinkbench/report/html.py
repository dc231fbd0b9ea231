"""The parts of a report as one HTML text, in which everything from a result is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sinkbench.metrics import MEANINGS, METHODS, anchor
from sinkbench.report.parts import Figure, Meanings, Opening, PageSection, Part, Table
from sinkbench.secrets import redacted


def html_of(title: str, heading: Sequence[str], opening: Opening, sections: Sequence[PageSection]) -> str:
    """The whole page: title, heading, first screen, and the sections that have parts. Secrets are redacted."""
    files = PackageLoader("sinkbench.report", ".")
    pages = Environment(loader=files, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    pages.tests["of"] = _is
    # Only these are already HTML: the drawings of draw.py, and this package's style.
    pages.filters["as_svg"] = Markup
    pages.filters["anchor"] = anchor
    style = Markup(pages.get_template("style.css").render())  # noqa: S704
    shown = [section for section in sections if section.parts]
    if meanings := _meanings([*opening.sections, *shown]):
        shown.append(PageSection("figures", "What each figure means", [Meanings(meanings)]))
    texts = {"title": title, "heading": heading, "opening": opening}
    page = pages.get_template("page.html")
    return redacted(page.render(texts, sections=shown, style=style, methods=METHODS))


def _meanings(sections: Sequence[PageSection]) -> dict[str, str]:
    """The figures in the sections and their meanings, in the order of docs/methods.md."""
    shown = set()
    for part in (part for section in sections for part in section.parts):
        if isinstance(part, Figure):
            shown.add(part.meaning)
        elif isinstance(part, Table):
            shown |= {part.meanings[header] for header in part.headers if header in part.meanings}
    return {heading: said for heading, said in MEANINGS.items() if heading in shown}


def _is(part: Part, kind: str) -> bool:
    return type(part).__name__ == kind
