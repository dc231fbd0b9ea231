"""The action for GitHub and the template for GitLab: their comparison runs on stored runs, the rest is bash."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from sinkbench.runs.store import copy_run
from sinkbench.settings import CHECKOUT
from tests.frozen.make import stored_run
from tests.support.commands import Command

ACTION, GITLAB = (YAML(typ="safe", pure=True).load(CHECKOUT / name) for name in ("action.yml", "ci/gitlab.yml"))
JOB = GITLAB[".sinkbench"]
SCRIPTS = [*(step["run"] for step in ACTION["runs"]["steps"]), *JOB["before_script"], *JOB["script"]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("script", "baseline", "code"), [(SCRIPTS[2], "main", 1), (SCRIPTS[2], "same", 0), (SCRIPTS[-1], "main", 1)]
)
def test_a_comparison_leaves_a_comment_and_its_exit_code(script: str, baseline: str, code: int, tmp_path: Path) -> None:
    run = stored_run("pair-b", tmp_path / "results")
    for name, kept in (("main", stored_run("pair-a", tmp_path / "earlier")), ("same", run)):
        copy_run(kept, tmp_path / "baselines" / name)
    sinkbench = tmp_path / "sinkbench"
    sinkbench.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sinkbench "$@"\n')
    sinkbench.chmod(0o755)
    places = {"BASELINES": "baselines", "RESULTS": "results", "BASELINE": baseline, "SLOWER": "5%"}
    github = {"GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary", "RUNNER_TEMP": str(tmp_path)}
    gitlab = {**JOB["variables"], "CI_COMMIT_BRANCH": "fix", "CI_DEFAULT_BRANCH": "main"}
    variables = {**os.environ, **gitlab, **places, **github, "SINKBENCH": str(sinkbench)}
    # As GitHub runs a step.
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    done = subprocess.run(shell, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    comment = (tmp_path / "sinkbench.md").read_text()
    assert comment.startswith("<!-- sinkbench pair -->\n")
    assert ("**slower**" in comment) is (code == 1)
    if script == SCRIPTS[2]:
        assert (tmp_path / "output").read_text() == f"comment={tmp_path / 'sinkbench.md'}\ncode={code}\n"
        assert (tmp_path / "summary").read_text() == comment


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_is_bash_with_known_options_and_no_expressions_of_the_forge(
    script: str, sinkbench: Command
) -> None:
    assert subprocess.run(["bash", "-n", "-c", script], check=False).returncode == 0
    # Such an expression would run what a name of a branch says.
    assert "${{" not in script
    for command in {"race", "compare"} & set(script.split()):
        options = re.findall(r"--[a-z-]+", sinkbench.done(command, "-h"))
        assert set(re.findall(r"--[a-z-]+", script)) <= set(options)
