"""CPU time and memory of clusters that sinkbench does not see itself, by PromQL: a section of a stack file."""

import math
from functools import partial
from typing import Self

import httpx
from pydantic import Field, model_validator

from sinkbench.errors import ServiceError
from sinkbench.services.http import http_client, http_errors
from sinkbench.stack import Usage
from sinkbench.stack.assembly import at_once
from sinkbench.stack.registry import sink_services
from sinkbench.stack.sections import HttpSection, Url
from sinkbench.suggest import did_you_mean
from sinkbench.yamlfile import mistake

TIMEOUT_SECONDS = 5.0
FIGURES = ("cpu_seconds", "memory_bytes")


class PrometheusSection(HttpSection):
    url: Url
    cpu_seconds: dict[str, str] = Field(
        default_factory=dict, description="by service: PromQL of one series, its CPU seconds so far, of all nodes"
    )
    memory_bytes: dict[str, str] = Field(
        default_factory=dict, description="by service: PromQL of one series, its resident memory"
    )

    @model_validator(mode="after")
    def _names_services(self) -> Self:
        known = ("kafka", "connect", *sink_services())
        for key in FIGURES:
            for name in getattr(self, key):
                if name not in known:
                    raise mistake(f"{{name}}.{key}: there is no service {name}{did_you_mean(name, known)}", key, name)
        return self

    def usage(self) -> Usage:
        """Asks all queries at once; what has no answer now is left out."""
        found = self._answers()
        cpu, memory = (
            {name: value for (of, name), value in found.items() if of == figure and isinstance(value, float)}
            for figure in FIGURES
        )
        return Usage(cpu_seconds=cpu, memory_bytes=memory)

    def problem(self) -> str | None:
        """Why a query has no answer, in one line; None if all have one."""
        found = self._answers().items()
        return next((f"{figure} of {name}: {said}" for (figure, name), said in found if isinstance(said, str)), None)

    def _answers(self) -> dict[tuple[str, str], float | str]:
        queries = {(figure, name): query for figure in FIGURES for name, query in getattr(self, figure).items()}
        try:
            with http_client(self.access, TIMEOUT_SECONDS) as client:
                return at_once({of: partial(self._ask, client, query) for of, query in queries.items()})
        except ServiceError as error:
            return dict.fromkeys(queries, str(error))

    def _ask(self, client: httpx.Client, query: str) -> float | str:
        try:
            with http_errors():
                answer = client.get(f"{self.url}/api/v1/query", params={"query": query})
            found = answer.json()
            if found["status"] != "success":
                return f"{query}: {found['error']}"
            series = found["data"]["result"]
            if len(series) != 1:
                return f"{query}: has {len(series)} series; add them up, or correct it"
            value = float(series[0]["value"][1])
        except ServiceError as error:
            return str(error)
        except (ValueError, KeyError, TypeError, IndexError):
            return f"{query}: HTTP {answer.status_code}, and no answer of Prometheus"
        return value if math.isfinite(value) else f"{query}: is {value}"
