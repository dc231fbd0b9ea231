"""The rules by subject: each decides on facts alone and has its heading in docs/doctor.md. Pure."""

import tomllib
from dataclasses import replace
from importlib.resources import files

from sinkbench.doctor.diagnosis import Rule
from sinkbench.doctor.rules import pipelines, services

__all__ = ["RULES"]

_TEXTS = tomllib.loads(files("sinkbench.doctor.rules").joinpath("texts.toml").read_text(encoding="utf-8"))
RULES: tuple[Rule, ...] = tuple(replace(rule, **_TEXTS[rule.code]) for rule in (*pipelines.RULES, *services.RULES))
"""All rules, in the order of docs/doctor.md."""
