"""Figures as metrics of Prometheus, and the cells of a run as OpenMetrics text."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from prometheus_client.core import Metric
from prometheus_client.openmetrics.exposition import generate_latest

from sinkbench.metrics.metric import ByService, Export
from sinkbench.results import RunSummary
from sinkbench.runs.reader import started_at
from sinkbench.secrets import redacted

Row = tuple[str, str, Mapping[str, str], float | None]


@dataclass(frozen=True)
class Families:
    """What prometheus_client collects. A row has a metric's name, meaning, labels and value; None: not known. `at` is
    the time of what is over, in seconds since the epoch."""

    rows: Callable[[], Iterable[Row]]
    at: float | None = None

    def collect(self) -> Iterable[Metric]:
        found: dict[str, Metric] = {}
        for name, meaning, labels, value in self.rows():
            if value is not None:
                kind = {"total": "counter", "info": "info"}.get(name.rpartition("_")[2], "gauge")
                bare = name.removesuffix("_info").removesuffix("_total")
                family = found.setdefault(name, Metric(f"sinkbench_{bare}", meaning, kind))
                hidden = {label: redacted(text) for label, text in labels.items()}
                family.add_sample(f"sinkbench_{name}", hidden, float(value), self.at)
        return found.values()


def openmetrics(run: RunSummary, columns: Collection[Export], services: Collection[ByService]) -> str:
    """Numbers in base units, as `sinkbench_cell_latency_p50_seconds`; texts are labels of `sinkbench_cell_info`. Their
    time is the run's start, as `promtool tsdb create-blocks-from openmetrics` needs one."""
    rows: list[Row] = []
    for cell in run.cells:
        values = {column.name: column.of(cell, run) for column in columns}
        texts = {name: value for name, value in values.items() if isinstance(value, str) and value}
        where = {name: texts[name] for name in ("run", "pipeline", "cell")}
        rows.append(("cell_info", "Texts in docs/format.md", texts, 1))
        found = [(name, where, value) for name, value in values.items() if not isinstance(value, str)]
        for each in services:
            found += [(each.name, {**where, "service": name}, used) for name, used in each.of(cell).items()]
        for name, labels, value in found:
            base = re.sub(r"_ms(?=_|$)", "_seconds", name)
            scale = 1 if base == name else 0.001
            rows.append((f"cell_{base}", f"{name} in docs/format.md", labels, value and value * scale))
    began = started_at(run.run)
    families = Families(lambda: rows, datetime.fromisoformat(began).timestamp() if began else None)
    text: str = generate_latest(families).decode()  # type: ignore[no-untyped-call]
    return text
