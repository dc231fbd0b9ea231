"""What the code makes of the stored runs beside this file: summaries, answers, tables, exports and comparisons.

    python -m tests.frozen.make        writes it anew into expected/, which is what `test_frozen.py` asks for

Only that which is meant to change may be written anew. All that is called of the code under
test is imported here.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from scripts.schema import format_schema
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.plan.sections import FIGURES
from sinkbench.race.resume import load_unfinished
from sinkbench.report.opening import about, opening
from sinkbench.report.page import sections_of
from sinkbench.report.parts import Figure, Lines, PageSection
from sinkbench.report.parts import Table as ReportTable
from sinkbench.results import RunSummary
from sinkbench.runs.compare import compare
from sinkbench.runs.gate import gate
from sinkbench.runs.reader import StoredRun, list_runs, load_run, load_summary
from sinkbench.runs.store import RunFolder
from sinkbench.settings import CHECKOUT
from sinkbench.summary.cells import summary_of
from sinkbench.summary.thresholds import threshold_lines
from sinkbench.tables.answers import answer_lines
from sinkbench.tables.cells import render
from sinkbench.tables.comparison import as_text, compared, runs_table
from sinkbench.tables.export import export
from sinkbench.tables.github import github
from sinkbench.tables.screen import screen
from sinkbench.tables.text import markdown

HERE = Path(__file__).parent
RUNS, EXPECTED = HERE / "runs", HERE / "expected"
NAMES = sorted(folder.name for folder in RUNS.iterdir() if folder.is_dir())
WIDTH = 140
# Runs that are exported in formats other than JSON, too.
EXPORTED = {"drain-quick", "drain-limits", "faults-poison"}
# Runs of which the report's words and tables are kept, without its pictures.
REPORTED = {"drain-quick", "drain-limits", "sustain-reads", "capacity", "faults-services"}
# The same in every run, or what samples would be needed for.
_NOT_REPORTED = {"environment", "configuration", "course", "left-out"}
# Runs of which everything is asked that thresholds can ask.
ASKED = {"drain-limits", "capacity"}
# Fields of trials that no cell has.
_OF_TRIALS = {
    *("trial", "block", "started_at", "seconds", "records", "stamped_records_per_second", "sent_share", "pilot"),
    *("window_seconds", "read_ahead_records", "stalled_seconds", "warm", "steady", "warm_up_seconds", "others"),
    *("lost_ranges", "duplicated_ranges", "altered_ranges", "wrong_keys", "reconciliation", "samples"),
    # What a cell has in another form.
    *("records_per_second", "total_peak_memory_bytes", "disk_bytes_per_record", "notes", "not_audited"),
}
COMPARED = {
    "pair": ("pair-a", "pair-b"),
    "pair-turned": ("pair-b", "pair-a"),
    "two-drains": ("drain-quick", "drain-queries"),
    "more-trials": ("pair-a", "drain-limits"),
    "few-trials": ("drain-cold", "drain-quick"),
    "drain-and-sustain": ("drain-quick", "sustain-bounded"),
    "sustain": ("sustain-bounded", "sustain-overload"),
    "records": ("drain-quick", "drain-mixed"),
    "faults": ("faults-services", "faults-mixed"),
    "capacity": ("capacity", "capacity"),
    "unfinished": ("pair-a", "unfinished"),
}


def unpack(name: str, folder: Path) -> Path:
    """The stored run of that name as sinkbench would have kept it, in a new folder below `folder`.

    Beside this file a run lacks what is null and what is empty; a trial lacks what is as in the first one of its cell,
    and an environment what is as in environment.json. A summary has no cells: they are made from the trials.
    """
    source = RUNS / name
    summary = _json(source / "summary.json")
    summary["environment"] = {**_json(RUNS / "environment.json"), **summary["environment"]}
    run = folder / str(summary["run"])
    run.mkdir(parents=True)
    (run / "summary.json").write_text(json.dumps(summary), "utf-8")
    first: dict[str, dict[str, Any]] = {}
    with (run / "trials.jsonl").open("w", encoding="utf-8") as file:
        for line in (source / "trials.jsonl").read_text("utf-8").splitlines():
            trial = json.loads(line)
            whole = bare(merged(first.setdefault(trial["cell"], trial), trial))
            file.write(json.dumps(whole, ensure_ascii=False) + "\n")
    # A plan in JSON is one in YAML, too.
    plan = YAML(typ="safe", pure=True).load(source / "plan.yaml")
    (run / "plan.yaml").write_text(json.dumps(plan, ensure_ascii=False), "utf-8")
    if (source / "connectors").exists():
        shutil.copytree(source / "connectors", run / "connectors")
    return run


def stored_run(name: str, folder: Path) -> Path:
    """The unpacked run with the summary that follows from its trials, as a command finds it."""
    run = unpack(name, folder)
    RunFolder(run).write_summary(read(run)[1].summary)
    return run


def outputs(name: str, run: Path) -> dict[str, str]:
    """What becomes of the run of that name, unpacked, by the names of the files in expected/."""
    kept = read(run)[1]
    summary = kept.summary
    found = {
        "summary.json": export_of(summary, "json"),
        "answers.txt": _lines(answer_lines(summary)),
        "screen.txt": screen(kept),
        "tables.txt": render(summary, WIDTH, kept.trials),
    }
    if name in EXPORTED:
        found |= {"cells.csv": export_of(summary, "csv"), "cells.md": export_of(summary, "md")}
    if name in REPORTED:
        found["report.txt"] = _report(run, kept)
    if name in ASKED:
        asked = summary.model_copy(update={"complete": True, "thresholds": _asked(summary)})
        found["more.txt"] = _lines(["# thresholds", *threshold_lines(asked)])
    if not summary.complete:
        found["unfinished.txt"] = _unfinished(run, kept)
    return found


@cache
def read(run: Path) -> tuple[Plan, StoredRun]:
    """The plan of an unpacked run, and the run with the summary that follows from its trials."""
    kept = load_run(run)
    plan = Plan.model_validate(_json(run / "plan.yaml"))
    known = kept.summary
    summary = summary_of(
        known.run,
        plan,
        expand(plan, kept.trials[0].workers),
        kept.trials,
        complete=known.complete,
        environment=known.environment,
        limits=known.limits,
        resumed=known.resumed,
    )
    summary = summary.model_copy(update={"plan": known.plan})
    return plan, replace(kept, summary=summary)


def export_of(summary: RunSummary, form: str) -> str:
    made = export(summary, form)
    assert isinstance(made, str)
    return made


def _report(run: Path, kept: StoredRun) -> str:
    """A report in words: its first screen, then its sections with their tables, a line a row."""
    first = opening(kept, 20_000.0)
    lines = [first.question, *about(kept), *first.lead]
    for section in [*first.figures, *first.asides, *sections_of(kept, run)]:
        if section.key not in _NOT_REPORTED and section.parts:
            lines += ["", f"# {section.title}", *_said(section)]
    return _lines(lines)


def _said(section: PageSection) -> Iterator[str]:
    for part in section.parts:
        if isinstance(part, Lines):
            yield from part.lines
        elif isinstance(part, Figure | ReportTable):
            rows = [] if isinstance(part, Figure) else [part.headers, *part.rows]
            yield from (f"- {part.caption}", *map(" | ".join, rows))


def _asked(summary: RunSummary) -> dict[str, dict[str, str]]:
    """All that can be asked of each cell: a bound that no figure fails, or one that none holds but 0, in turn."""
    labels, bounds = dict.fromkeys(cell.label for cell in summary.cells), (">= 0", "<= 0")
    asked = sorted(FIGURES, key=lambda figure: figure in ("lost", "duplicates"))
    return {
        label: {figure: bounds[(number + place) % 2] for place, figure in enumerate(asked)}
        for number, label in enumerate(labels)
    }


def _unfinished(run: Path, kept: StoredRun) -> str:
    """What is read of a run that has not ended: from its summary, without one, and what is left of it."""
    told = [f"complete: {kept.summary.complete}, passed: {kept.summary.passed}"]
    with tempfile.TemporaryDirectory() as other:
        copy = Path(other) / run.name
        shutil.copytree(run, copy)
        with (copy / "trials.jsonl").open("a", encoding="utf-8") as file:
            file.write('{"trial": "cut o')
        # Of a race that goes on: a part of a line, and a summary without the last trial.
        told.append(f"read as it goes on: {load_summary(copy) == kept.summary}")
        (copy / "summary.json").unlink()
        bare = kept.summary.model_copy(update={"environment": {}, "limits": [], "resumed": []})
        found = load_summary(copy).model_copy(update={"plan": bare.plan})
        told.append(f"read without a summary: {found == bare}")
        RunFolder(copy).write_summary(kept.summary)
        unfinished = load_unfinished(copy, CHECKOUT / "connectors")
    told += ["left:", *(f"  {cell.key}" for cell in (unfinished.left if unfinished is not None else []))]
    return _lines(told)


def comparisons(runs: Mapping[str, Path]) -> dict[str, str]:
    """The comparisons of unpacked runs, by the names of the files in expected/compared/."""
    found = {}
    for name, (a, b) in COMPARED.items():
        comparison = compare(*(read(runs[each])[1] for each in (a, b)))
        gates = []
        for bounds in ((5.0, 5.0), (0.0, None), (None, 30.0)):
            told = gate(comparison, *bounds)
            gates += [f"slower {bounds[0]}, more CPU {bounds[1]}:"]
            kinds = ("failures", "remarks", "inconclusive")
            gates += [f"  {kind}: {line}" for kind in kinds for line in getattr(told, kind)]
        found[f"{name}.txt"] = f"{as_text(compared(comparison))}\n{_lines(gates)}"
        if name in ("pair", "records"):
            found[f"{name}.md"] = markdown(compared(comparison))
            found[f"{name}.github.md"] = github(comparison, gate(comparison, 5.0, 5.0).failures)
    return found


def listing(runs: Iterable[Path]) -> str:
    """The list of unpacked runs, with their own summaries."""
    with tempfile.TemporaryDirectory() as root:
        for run in runs:
            copy = Path(shutil.copytree(run, Path(root) / run.name))
            RunFolder(copy).write_summary(read(run)[1].summary)
        return runs_table(list_runs(Path(root)))


def fields() -> str:
    """The fields of summary.json and trials.jsonl, a line a record: also those that are null in all of the runs."""
    definitions: dict[str, Any] = json.loads(format_schema())["$defs"]
    return _lines([f"{name}: {' '.join(each.get('properties', {}))}" for name, each in sorted(definitions.items())])


def write(root: Path) -> None:
    """Writes all that is expected into the folder `root`."""
    with tempfile.TemporaryDirectory() as folder:
        runs = {name: unpack(name, Path(folder)) for name in NAMES}
        for name, run in runs.items():
            found = outputs(name, run)
            _write_all(root / name, {**found, "summary.json": compact(name, found["summary.json"])})
        _write_all(root / "compared", comparisons(runs))
        _write_all(root, {"runs.txt": listing(runs.values()), "fields.txt": fields()})


def compact(name: str, summary: str) -> str:
    """A summary as it is kept in expected/, a line for each of its members and each of its cells.

    It is without its environment, which is as it was kept; without what is null, which `fields` names; and a cell lacks
    what is as in its first trial.
    """
    found = bare(json.loads(summary))
    del found["environment"]
    first = _first_trials(name)
    cells = [beyond(first.get(cell["cell"], {}), cell) for cell in found["cells"]]
    lines = [f"{json.dumps(key)}:{_short(value)}" for key, value in found.items() if key != "cells"]
    return "{\n" + ",\n".join([*lines, '"cells":[\n' + ",\n".join(map(_short, cells)) + "\n]"]) + "\n}\n"


def uncompacted(name: str, text: str) -> dict[str, Any]:
    """The whole of what `compact` has made, but for the environment and what is null."""
    found: dict[str, Any] = json.loads(text)
    first = _first_trials(name)
    return {**found, "cells": [bare(merged(first.get(cell["cell"], {}), cell)) for cell in found["cells"]]}


def _first_trials(name: str) -> dict[str, dict[str, Any]]:
    """The first trial of each cell, with those fields that cells have, too."""
    found: dict[str, dict[str, Any]] = {}
    for line in (RUNS / name / "trials.jsonl").read_text("utf-8").splitlines():
        trial = json.loads(line)
        found.setdefault(trial["cell"], {key: trial[key] for key in trial if key not in _OF_TRIALS})
    return found


def beyond(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """What is not as in the first one; with the cell, and null for what is in the first one alone."""
    found: dict[str, Any] = {}
    for key in dict.fromkeys([*other, *first]):
        one, value = first.get(key), other.get(key)
        if key == "cell" or one != value:
            found[key] = beyond(one, value) if isinstance(one, dict) and isinstance(value, dict) else value
    return found


def merged(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The whole of what `beyond` has left."""
    found = {**first, **other}
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(first.get(key), dict):
            found[key] = merged(first[key], value)
    return found


def _short(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def bare(content: Any, absent: Sequence[Any] = (None,)) -> Any:
    """JSON without the members of objects that are null, or any of these."""
    if isinstance(content, dict):
        found = {key: bare(value, absent) for key, value in content.items()}
        return {key: value for key, value in found.items() if value not in absent}
    return [bare(value, absent) for value in content] if isinstance(content, list) else content


def _write_all(folder: Path, texts: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(ruled(text), "utf-8")


def ruled(text: str) -> str:
    """A text with the lines below headers in short: how many strokes they have."""
    return re.sub("─{3,}", lambda line: f"─ {len(line[0])} ─", text)


def _json(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return content


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    shutil.rmtree(EXPECTED, ignore_errors=True)
    write(EXPECTED)
