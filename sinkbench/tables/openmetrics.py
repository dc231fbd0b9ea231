"""The cells of a run as OpenMetrics text: a gauge for each number of an export, and its texts as labels of one info."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.openmetrics.exposition import generate_latest

from sinkbench.metrics.metric import ByService, Export
from sinkbench.results import RunSummary
from sinkbench.secrets import redacted

LABELS = ("run", "pipeline", "cell")


def openmetrics(summary: RunSummary, columns: Iterable[Export], services: Iterable[ByService]) -> str:
    """Only what was measured, in base units: `latency_p50_ms` becomes `sinkbench_cell_latency_p50_seconds`."""
    return generate_latest(_Families([*_cells(summary, columns), *_services(summary, services)])).decode()


@dataclass(frozen=True)
class _Families:
    """What prometheus_client writes."""

    families: list[Metric]

    def collect(self) -> Iterable[Metric]:
        return [each for each in self.families if each.samples]


def _cells(run: RunSummary, columns: Iterable[Export]) -> Iterator[Metric]:
    info = InfoMetricFamily("sinkbench_cell", "Texts of an export: docs/format.md", labels=LABELS)
    texts = {}
    for column in columns:
        values = [column.of(cell, run) for cell in run.cells]
        if column.sql == "VARCHAR":
            texts[column.name] = values
        else:
            yield _gauge(column.name, LABELS, zip(_labels(run), values, strict=True))
    for place, labels in enumerate(_labels(run)):
        found = {name: values[place] for name, values in texts.items() if name not in LABELS}
        info.add_metric(labels, {name: redacted(str(text)) for name, text in found.items() if text})
    yield info


def _services(run: RunSummary, services: Iterable[ByService]) -> Iterator[Metric]:
    for each in services:
        used = [(labels, each.of(cell).items()) for labels, cell in zip(_labels(run), run.cells, strict=True)]
        rows = [([*labels, service], number) for labels, found in used for service, number in found]
        yield _gauge(each.name, (*LABELS, "service"), rows)


def _labels(run: RunSummary) -> list[list[str]]:
    return [[redacted(each) for each in (run.run, cell.pipeline, cell.cell)] for cell in run.cells]


def _gauge(name: str, labels: Iterable[str], rows: Iterable[tuple[list[str], object]]) -> GaugeMetricFamily:
    base = re.sub(r"_ms(?=_|$)", "_seconds", name)
    family = GaugeMetricFamily(f"sinkbench_cell_{base}", f"{name} of an export: docs/format.md", labels=list(labels))
    for values, number in rows:
        if isinstance(number, int | float):
            family.add_metric(values, number if base == name else number / 1000)
    return family
