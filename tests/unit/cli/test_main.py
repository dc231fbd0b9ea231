"""The command line as a whole: every command is found, and loads no more than it needs."""

import subprocess
import sys

import pytest
from typer.main import get_command

from sinkbench.cli.main import MODULES, app, main


def test_every_command_has_a_name_and_a_help_of_its_own() -> None:
    group = get_command(app)
    found = [group.get_command(None, name) for name in group.list_commands(None)]
    assert [command.name for command in found] == list(MODULES)
    assert all(command.help for command in found)


def test_an_unknown_command_and_a_renamed_option_are_refused_with_the_right_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["rac"]) == 2
    assert "No such command 'rac'; did you mean 'race'?" in capsys.readouterr().err
    assert main(["compare", "a", "b", "--fail-if-dearer=5%"]) == 2
    assert "No such option: --fail-if-dearer; it was renamed to --fail-if-cpu-higher" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["up"], ["race"], ["compare"], ["selftest"], ["selftest", "noise"]])
def test_the_help_of_every_command_is_plain_text(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--help"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("Usage: sinkbench " + " ".join(command))
    assert "─" not in told


@pytest.mark.parametrize("module", ["main", "stack"])
def test_a_short_command_does_not_wait_for_what_a_race_needs(module: str) -> None:
    code = (
        f"import sys, sinkbench.cli.{module}\n"
        "sys.exit(', '.join(sorted({'numpy', 'scipy', 'sinkbench.race.session'} & sys.modules.keys())) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
