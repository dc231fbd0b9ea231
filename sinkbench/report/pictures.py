"""The charts of a report as files of their own, to put into a page, a pull request or a slide."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree as ET

from sinkbench.report.parts import Figure, Section
from sinkbench.secrets import redacted
from sinkbench.store import make_folder, write_text

__all__ = ["standalone", "write_charts"]

_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
# Twice what is drawn for a phone, as a desktop shows it in the report.
_SCALE = 1.5
_MARGIN = 8.0


def standalone(svg: str, label: str) -> str:
    """A chart of a report as an SVG document, in the colours of the report, also those for dark screens.

    Args:
        svg: the <svg> element that stands in the page.
        label: what it shows, for who does not see it.
    """
    root = ET.fromstring(svg)  # noqa: S314 - we have made it
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    width, height = width + 2 * _MARGIN, height + 2 * _MARGIN
    root.attrib = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": f"{left - _MARGIN:g} {top - _MARGIN:g} {width:g} {height:g}",
        "width": f"{_SCALE * width:g}",
        "height": f"{_SCALE * height:g}",
        "role": "img",
        "aria-label": label,
    }
    colours = files("sinkbench.report").joinpath("colours.css").read_text(encoding="utf-8")
    style = ET.Element("style")
    style.text = f"{colours}svg {{ background: var(--paper); font-family: {_FONTS}; stroke-linejoin: round; }}"
    root.insert(0, style)
    return f"{ET.tostring(root, encoding='unicode')}\n"


def write_charts(sections: Sequence[Section], folder: Path) -> list[Path]:
    """Writes each chart into a folder, which is made if need be, as `<section>-<number>.svg`; returns the files.

    UserError if one cannot be written.
    """
    make_folder(folder)
    written = []
    for section in sections:
        charts = [chart for part in section.parts if isinstance(part, Figure) for chart in part.charts]
        for number, chart in enumerate(charts, start=1):
            path = folder / f"{section.key}-{number:0{len(str(len(charts)))}d}.svg"
            write_text(path, redacted(standalone(chart.svg, chart.label)))
            written.append(path)
    return written
