"""The charts of a report as separate files."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree as ET

from sinkbench.report.parts import Figure, PageSection
from sinkbench.runs.store import make_folder, write_text
from sinkbench.secrets import redacted

_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
# The size in the report on a desktop.
_SCALE = 1.5
_MARGIN = 8.0


def standalone(svg: str, label: str) -> str:
    """An <svg> element of a report as an SVG document, with the report's colours; `label` is its title."""
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


def write_charts(sections: Sequence[PageSection], folder: Path) -> None:
    """Writes each chart into `folder` as `<section>-<number>.svg`; UserError if one cannot be written."""
    make_folder(folder)
    for section in sections:
        charts = [chart for part in section.parts if isinstance(part, Figure) for chart in part.charts]
        for number, chart in enumerate(charts, start=1):
            name = f"{section.key}-{number:0{len(str(len(charts)))}d}.svg"
            write_text(folder / name, redacted(standalone(chart.svg, chart.label)))
