"""Connector files: `connectors/<sink>/<name>.json`, each the body of a `POST /connectors`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loadgen.reading import parse_json, read_text
from sinkbench.errors import PlanError
from sinkbench.secrets import conceal_in


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
    for key, value in config.items():
        if isinstance(value, dict | list):
            raise PlanError(
                f"{path}: not a connector file (config.{key} is no text, number, true or false); correct it"
            )
    conceal_in(config)
    return config
