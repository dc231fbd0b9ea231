"""An index for your own records, with a type for each of their members."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from loadgen.reading import parse_json, read_text
from sinkbench.analysis.fields import Field, Kind, Survey
from sinkbench.errors import TargetError
from sinkbench.sinks.proposal import Proposal

# An index permits 1,000 fields, but a proposal must be readable.
MOST_FIELDS = 300
# Without shapes: not every distribution of Elasticsearch has the type geo_shape.
TYPES: dict[Kind, dict[str, Any]] = {
    Kind.WHOLE: {"type": "long"},
    Kind.DECIMAL: {"type": "double"},
    Kind.BOOLEAN: {"type": "boolean"},
    Kind.WORD: {"type": "keyword", "ignore_above": 8191},
    Kind.TEXT: {"type": "text"},
    Kind.POINT_TEXT: {"type": "geo_point"},
    Kind.POINT: {"type": "geo_point"},
}


def propose_index(found: Survey, checkout: Path, source: str) -> Proposal:
    """Proposes elasticsearch/index.json with fields for such records. Raises TargetError if that file is unusable."""
    usual = checkout / "elasticsearch" / "index.json"
    try:
        body = parse_json(read_text(usual, TargetError))
        bench = body["mappings"]["properties"]["bench"]
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise TargetError(f"{usual}: cannot be used as an index: {error!r}") from None
    usable = [each for each in found.fields if each.kind in (*TYPES, Kind.DATE) and all(each.path)]
    properties: dict[str, Any] = {}
    for each in usable[:MOST_FIELDS]:
        _put(properties, each)
    # The audit needs it.
    properties["bench"] = bench
    left_out = [each.name for each in found.fields if each not in usable] + [each.name for each in usable[MOST_FIELDS:]]
    body["mappings"] = {**body["mappings"], "properties": properties, "_meta": {"proposed_for": source}}
    notes = (f"not indexed by Elasticsearch, but kept: {', '.join(left_out)}",) if left_out else ()
    return Proposal(".index.json", f"{json.dumps(body, indent=2, ensure_ascii=False)}\n", notes)


def _put(properties: dict[str, Any], each: Field) -> None:
    for name in each.path[:-1]:
        properties = properties.setdefault(name, {"properties": {}})["properties"]
    date = {"type": "date", "format": each.date_format}
    properties[each.path[-1]] = date if each.kind is Kind.DATE else dict(TYPES[each.kind])
