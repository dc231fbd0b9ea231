"""Makes matplotlib's SVG fit for a page: small, without fixed size and colours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree as ET

_SVG = "{http://www.w3.org/2000/svg}"
_COLOURED = ("fill", "stroke")
_HREF = "{http://www.w3.org/1999/xlink}href"
_NUMBER = re.compile(r"(-?\d+)\.(\d)\d*")
_REFERENCE = re.compile(r"#([\w.-]+)")
_FONT = re.compile(r"(?:font|font-size): ?(?:(?:bold|italic|\d00) )*([\d.]+)px[^;]*;?|font-family:[^;]*;?")
# Browsers' defaults.
_NEEDLESS = re.compile(r"\s*(?:stroke-miterlimit|text-anchor: start|stroke-dashoffset: 0)[^;]*(?:;|$)")
_STILL = re.compile(r"rotate\(-?0 [^)]*\)")


def inlined(text: str, key: str, colours: Mapping[str, str]) -> str:
    """An <svg> element from an SVG document, hidden from screen readers, which read the text around it. It keeps its
    `viewBox`, but no size, fonts, unused ids or namespaces; coordinates are rounded to a tenth of a point. `key`
    prefixes its ids, which must be unique on the page; `colours` replace those such as `#102030`."""
    # Only matplotlib writes it.
    root = ET.fromstring(text)  # noqa: S314
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.split("}")[-1] in {"metadata", "style"}:
                parent.remove(child)
    wanted = {name for each in root.iter() for value in each.attrib.values() for name in _REFERENCE.findall(value)}
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        element.attrib = dict(_attributes(element.attrib, key, wanted, colours))
        element.tail = None
        if element.tag != "text":
            element.text = None
    _flatten(root)
    root.attrib = {"viewBox": root.attrib["viewBox"], "aria-hidden": "true", "focusable": "false"}
    return ET.tostring(root, encoding="unicode")


def _attributes(
    given: Mapping[str, str], key: str, wanted: set[str], colours: Mapping[str, str]
) -> list[tuple[str, str]]:
    # A style may use a variable, not every attribute may.
    found = {name: value for name, value in given.items() if name not in _COLOURED}
    painted = [f"{name}: {value}" for name, value in given.items() if name in _COLOURED]
    if painted:
        found["style"] = "; ".join([*painted, *filter(None, [given.get("style")])])
    kept = []
    for name, value in found.items():
        if name == "id":
            # `wanted` also contains colours such as #102030, which are no ids.
            if value in wanted:
                kept.append((name, f"{key}-{value}"))
        elif name == _HREF:
            kept.append(("href", f"#{key}-{value[1:]}"))
        elif name == "clip-path":
            kept.append((name, value.replace("url(#", f"url(#{key}-")))
        elif name == "style":
            kept.append((name, _style(value, key, colours)))
        elif name == "transform" and _STILL.fullmatch(value):
            continue
        else:
            kept.append((name, _NUMBER.sub(r"\1.\2", " ".join(value.split()))))
    return [(name, value) for name, value in kept if value]


def _style(value: str, key: str, colours: Mapping[str, str]) -> str:
    value = _FONT.sub(lambda size: f"font-size:{size[1]}px;" if size[1] else "", value)
    value = _NEEDLESS.sub("", value).replace("url(#", f"url(#{key}-")
    value = re.sub(r"#[0-9a-f]{6}\b", lambda colour: colours.get(colour[0], colour[0]), value)
    return re.sub(r"([:;]) +", r"\1", value).strip("; ")


def _flatten(element: ET.Element) -> None:
    kept: list[ET.Element] = []
    for child in element:
        _flatten(child)
        kept += list(child) if child.tag == "g" and not child.attrib else [child]
    element[:] = kept
