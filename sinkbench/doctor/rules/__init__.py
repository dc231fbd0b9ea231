"""The rules by subject: each decides on facts alone and has its heading in docs/doctor.md. Pure."""

import tomllib
from importlib.resources import files

from sinkbench.doctor.diagnosis import Area, Rule
from sinkbench.doctor.rules import pipelines, services

__all__ = ["RULES"]

_TEXTS = tomllib.loads(files("sinkbench.doctor.rules").joinpath("texts.toml").read_text(encoding="utf-8"))
_FINDS = {**vars(pipelines), **vars(services)}
RULES = tuple(
    Rule(code, tuple(map(Area, texts.pop("needs", ()))), _FINDS[code.replace("-", "_")], **texts)
    for code, texts in _TEXTS.items()
)
"""All rules, in the order of docs/doctor.md."""
