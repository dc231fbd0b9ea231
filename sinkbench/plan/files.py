"""The files that a plan names: connector files `connectors/<sink>/<name>.json`, queries, and targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from loadgen.reading import parse_json, read_text
from sinkbench.analysis.query import Query
from sinkbench.errors import PlanError
from sinkbench.secrets import conceal_in
from sinkbench.yamlfile import YamlFile


def known_pipelines(connectors: Path) -> list[str]:
    """Sorted names `<sink>/<name>` of the connector files in a folder."""
    return sorted(f"{file.parent.name}/{file.stem}" for file in connectors.glob("*/*.json"))


def read_connector(path: Path) -> dict[str, Any]:
    """Returns the `config` of a connector file and conceals its secrets from then on. Raises PlanError."""
    try:
        found = parse_json(read_text(path, PlanError))
    except FileNotFoundError:
        raise PlanError(f"{path}: there is no such connector file; restore it, or leave the pipeline out") from None
    except ValueError as broken:
        raise PlanError(f"{path}: not a connector file ({broken}); correct it") from None
    config = found.get("config") if isinstance(found, dict) else None
    if not isinstance(config, dict):
        raise PlanError(f"{path}: not a connector file (an object with name and config); correct it")
    wrong = next((key for key, value in config.items() if isinstance(value, dict | list)), None)
    if wrong is not None:
        raise PlanError(f"{path}: not a connector file (config.{wrong} is no text, number, true or false); correct it")
    conceal_in(config)
    return config


def load_queries(folder: Path) -> list[Query]:
    """Reads the queries of a folder, sorted by file name. Raises PlanError with a line for each mistake."""
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise PlanError(f"{folder}: there is no query in it; put one there as a file NAME.yaml, or leave queries out")
    found = []
    for path in files:
        source = YamlFile(path, "query", PlanError)
        try:
            found.append(Query.model_validate({**source.content, "name": path.stem}))
        except ValidationError as invalid:
            raise PlanError(source.explain(invalid, Query)) from None
    return found
