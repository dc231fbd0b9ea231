"""The command line as a whole: every command is found, and loads no more than it needs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from sinkbench import __version__
from sinkbench.cli.main import COMMANDS, app, main
from tests.frozen.make import unpack


def test_every_command_has_a_name_and_a_help_of_its_own() -> None:
    group = get_command(app)
    for name in group.list_commands(None):
        command, text = group.get_command(None, name), COMMANDS[name][1]
        assert (command.name, command.help.partition(".")[0]) == (name, text)
        assert len(text) <= 60


def test_an_unknown_command_and_a_renamed_option_are_refused_with_the_right_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["rac"]) == 2
    assert "No such command 'rac'; did you mean 'race'?" in capsys.readouterr().err
    assert main(["compare", "a", "b", "--fail-if-dearer=5%"]) == 2
    assert "No such option: --fail-if-dearer; it was renamed to --fail-if-cpu-higher" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["race", "--foo"], "No such option: --foo; see `sinkbench race -h`"),
        (["race", "--trials", "many"], "'--trials': Input should be a valid integer"),
        (["scale"], "Missing argument"),
        (["show", "--all", "a", "b"], "unexpected extra argument"),
    ],
)
def test_unusable_input_is_one_line(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("sinkbench: ")
    assert words in told.err
    assert told.err.count("\n") == 1


def test_the_help_has_groups_and_summaries_that_are_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("-h", "--help"):
        assert main([option]) == 0
        told = capsys.readouterr().out
        assert [text for _, text in COMMANDS.values() if f"  {text}\n" not in told] == []
        assert "\nMeasure:\n  race " in told
        assert told.partition("Examples:\n")[2].count("\n") == 3
    assert main(["--version"]) == 0
    told = capsys.readouterr().out
    assert re.fullmatch(rf"{re.escape(__version__)}( \(commit [0-9a-f]{{40}}\+?\))?\n", told)
    assert main(["version"]) == 0
    assert capsys.readouterr().out == told


def test_the_help_imports_nothing_that_only_commands_need() -> None:
    code = "import sys; sys.argv[1:] = ['-h']\nfrom sinkbench.cli.main import main\nmain()\n"
    code += "sys.exit(', '.join({'pydantic', 'numpy', 'sinkbench.settings'} & sys.modules.keys()) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["--help", "runs", "show"])
def test_what_reads_kept_runs_loads_no_client_and_no_statistics(command: str, tmp_path: Path) -> None:
    unpack("drain-quick", tmp_path)
    arguments = [command] if command == "--help" else [command, "--results", str(tmp_path)]
    heavy = {
        "confluent_kafka",
        "docker",
        "duckdb",
        "elasticsearch",
        "httpx",
        "psutil",
        "psycopg",
        "scipy",
        "supervisor",
    }
    code = f"import sys\nfrom sinkbench.cli.main import main\nif main({arguments}): sys.exit('failed')\n"
    code += f"sys.exit(', '.join({heavy} & sys.modules.keys()) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


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


@pytest.mark.parametrize("given", [["race"], ["show"], ["doctor", "--stack"], []])
@pytest.mark.parametrize("token", ["x" * 5_000, "x " * 2_500, "--" + "x" * 5_000])
def test_a_refusal_does_not_repeat_a_page_of_what_was_given(
    given: list[str], token: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*given, token]) == 2
    said = capsys.readouterr().err
    assert "xxx" in said or "x x x" in said
    assert len(said) < 2_500
    assert said.count("\n") == 1
    # What to do comes after it.
    assert not said.rstrip().endswith("...")
