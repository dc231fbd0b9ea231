"""The parts of a report as one HTML text, in which nothing that a result holds is read as HTML."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sinkbench.report.parts import Part, Section

__all__ = ["html_of"]


def html_of(
    title: str, heading: Sequence[str], lead: str, grounds: Sequence[str], outcome: str, sections: Sequence[Section]
) -> str:
    """The whole page.

    Args:
        title: of the page and of its first heading.
        heading: lines below that: which run, and what on.
        lead: the answer in one sentence.
        grounds: lines below that, with what it rests on.
        outcome: whether every check passed, in a few words; empty if nothing was checked.
        sections: in their order; those without parts are left out.
    """
    pages = Environment(
        loader=PackageLoader("sinkbench.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.tests["of"] = _is
    # The two things that are HTML already: what svg.py has made, and the style that comes with this package.
    pages.filters["as_svg"] = Markup
    style = Markup(pages.get_template("style.css").render())  # noqa: S704
    shown = [section for section in sections if section.parts]
    return pages.get_template("page.html").render(
        title=title, heading=heading, lead=lead, grounds=grounds, outcome=outcome, sections=shown, style=style
    )


def _is(part: Part, kind: str) -> bool:
    return type(part).__name__ == kind
