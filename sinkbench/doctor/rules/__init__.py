"""The rules by subject: each decides on facts alone and has its heading in docs/doctor.md. Pure."""

from sinkbench.doctor.diagnosis import Rule
from sinkbench.doctor.rules import pipelines, services

__all__ = ["RULES"]

RULES: tuple[Rule, ...] = (*pipelines.RULES, *services.RULES)
"""All rules, in the order of docs/doctor.md."""
