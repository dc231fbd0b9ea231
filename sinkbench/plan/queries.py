"""The queries of a plan: a folder of YAML files, which all sinks must answer alike."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from sinkbench.analysis.query import Query
from sinkbench.errors import PlanError
from sinkbench.yamlfile import YamlFile


def load_queries(folder: Path) -> list[Query]:
    """Reads the queries of a folder, sorted by file name. Raises PlanError with a line for each mistake."""
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise PlanError(f"{folder}: there is no query in it; put one there as a file NAME.yaml, or leave queries out")
    return [_load(file) for file in files]


def _load(path: Path) -> Query:
    source = YamlFile(path, "query", PlanError)
    try:
        return Query.model_validate({**source.content, "name": path.stem})
    except ValidationError as invalid:
        raise PlanError(source.explain(invalid, Query)) from None
