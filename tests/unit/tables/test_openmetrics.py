"""A run as OpenMetrics text, read again by prometheus_client."""

import csv
import io
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed

from sinkbench.runs.reader import load_run
from sinkbench.tables.export import BY_SERVICE, COLUMNS, export
from tests.support.samplerun import keep_run
from tests.support.trials import cell_summary, run_summary


def test_every_number_of_the_csv_is_there_in_base_units_and_nothing_else(tmp_path: Path) -> None:
    summary = load_run(keep_run(tmp_path / "results", blocks=2, seconds=5, everything=True)).summary
    numbers = {("sinkbench_cell_info", cell.cell, ""): 1.0 for cell in summary.cells}
    for row in csv.DictReader(io.StringIO(export(summary, "csv"))):
        for column, text in row.items():
            name, _, service = column.partition(".")
            if text and (name in BY_SERVICE or (name in COLUMNS and COLUMNS[name].sql != "VARCHAR")):
                number = float({"true": "1", "false": "0"}.get(text, text)) / (1000 if "_ms" in name else 1)
                numbers[f"sinkbench_cell_{name.replace('_ms', '_seconds')}", row["cell"], service] = number
    samples = [each for family in parsed(export(summary, "openmetrics")) for each in family.samples]
    found = {(each.name, each.labels["cell"], each.labels.get("service", "")): each.value for each in samples}
    assert found == pytest.approx(numbers)


def test_texts_of_any_letters_are_labels_of_one_info_and_the_end_is_marked() -> None:
    text = 'LOST 3: "C:\\new\nline" # EOF ü'
    exported = export(run_summary(cell_summary("postgres/jdbc", 10.0, verdict=text, passed=False)), "openmetrics")
    assert exported.endswith("\n# EOF\n")
    (info,) = [each for each in parsed(exported) if each.type == "info"]
    assert (info.samples[0].labels["verdict"], info.samples[0].labels["pipeline"]) == (text, "postgres/jdbc")
