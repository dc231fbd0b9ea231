"""Profiles on real services: one more trial, which no figure is of, the frames on top, and flame graphs."""

import re
from pathlib import Path

from sinkbench.report.page import write_report
from sinkbench.stack.local import LocalStack
from tests.e2e.races import stack_file
from tests.support.commands import Run, refuses, succeeded
from tests.support.latest import summary_of
from tests.support.trials import quick_plan

PLAN = quick_plan("elasticsearch/reference-bulk", window=3)


def names_in(graph: Path) -> list[str]:
    """The names of a flame graph, each of which says first how many characters it shares with the one before."""
    first, *others = re.findall(r"^'(.*)',?$", graph.read_text(), re.MULTILINE)
    names = [first]
    for coded in others:
        names.append(names[-1][: ord(coded[0]) - 32] + coded[1:])
    return names


def test_each_cell_gets_a_flame_graph_of_each_service_and_no_further_trial(
    stack: LocalStack, sinkbench: Run, tmp_path: Path
) -> None:
    (tmp_path / "profiled.yaml").write_text(PLAN)
    assert "no profile of" not in succeeded(sinkbench("race", "profiled.yaml", "--profile")).stdout
    found = summary_of(tmp_path)
    assert [cell["trials"] for cell in found["cells"]] == [1]
    run = tmp_path / "results" / found["run"]
    bulk = found["cells"][0]["cell"]
    by = {(each["cell"], each["service"]): each for each in found["profiles"]}
    # Kafka may do too little here to have one.
    assert by.keys() >= {(bulk, "connect"), (bulk, "elasticsearch")}
    for each in by.values():
        assert each["samples"] > 0
        assert 0 < sum(each["top"].values()) <= 1.01
        assert each["service"] in (run / each["file"]).read_text()
    # What the connector alone calls.
    assert any("sinkbench.reference.Elasticsearch" in name for name in names_in(run / by[bulk, "connect"]["file"]))
    assert f"{bulk}, on top of elasticsearch's stacks" in sinkbench("show", "--bottlenecks").stdout
    assert by[bulk, "connect"]["file"] in write_report(run).read_text()


def test_a_stack_whose_processes_are_elsewhere_cannot_be_profiled(
    stack: LocalStack, sinkbench: Run, tmp_path: Path
) -> None:
    (tmp_path / "profiled.yaml").write_text(PLAN)
    file = stack_file(tmp_path, stack.endpoints)
    done = refuses(sinkbench("race", "profiled.yaml", "--profile", "--stack", str(file)))
    assert "profile: " in done.stdout + done.stderr
