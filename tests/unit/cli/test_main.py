"""The command line as a whole: every command is found, loads no more than it needs, and keeps few heaps."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from sinkbench import __version__
from sinkbench.cli.main import COMMANDS, MOST_HEAPS, app
from tests.frozen.make import unpack
from tests.support.commands import Command


def test_every_command_has_a_name_and_a_help_of_its_own() -> None:
    group = get_command(app)
    for name in group.list_commands(None):
        command, text = group.get_command(None, name), COMMANDS[name][1]
        assert (command.name, command.help.partition(".")[0]) == (name, text)
        assert len(text) <= 60


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("rac", "No such command 'rac'; did you mean 'race'?"),
        ("race --foo", "No such option: --foo; see `sinkbench race -h`"),
        ("race --trials many", "'--trials': Input should be a valid integer"),
        ("scale", "Missing argument"),
        ("show --all a b", "unexpected extra argument"),
    ],
)
def test_unusable_input_is_one_line(arguments: str, words: str, sinkbench: Command) -> None:
    code, out, err = sinkbench(*arguments.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("sinkbench: ")
    assert words in err


def test_the_help_has_groups_and_summaries_that_are_not_cut(sinkbench: Command) -> None:
    for option in ("-h", "--help"):
        told = sinkbench.done(option)
        assert [text for _, text in COMMANDS.values() if f"  {text}\n" not in told] == []
        assert "\nMeasure:\n  race " in told
        assert told.partition("Examples:\n")[2].count("\n") == 3
    told = sinkbench.done("--version")
    assert re.fullmatch(rf"{re.escape(__version__)}( \(commit [0-9a-f]{{40}}\+?\))?\n", told)
    assert sinkbench.done("version") == told


CLIENTS = "confluent_kafka docker duckdb elasticsearch httpx psutil psycopg scipy supervisor"


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("assert main(['-h']) == 0", f"pydantic numpy sinkbench.settings {CLIENTS}"),
        ("assert main(['runs', '--results', FOLDER]) == 0", CLIENTS),
        ("assert main(['show', '--results', FOLDER]) == 0", CLIENTS),
        ("import sinkbench.cli.stack", "numpy scipy sinkbench.race.session"),
        ("from sinkbench.cli import race, runs, selftest, stack", "jinja2 sinkbench.report"),
    ],
)
def test_a_short_command_loads_no_more_than_it_needs(code: str, heavy: str, tmp_path: Path) -> None:
    unpack("drain-quick", tmp_path)
    code = f"import sys\nfrom sinkbench.cli.main import main\n{code.replace('FOLDER', repr(str(tmp_path)))}\n"
    code += f"sys.exit(', '.join({set(heavy.split())} & sys.modules.keys()) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["up", "race", "compare", "selftest", "selftest noise"])
def test_the_help_of_every_command_is_plain_text(command: str, sinkbench: Command) -> None:
    told = sinkbench.done(*command.split(), "--help")
    assert told.startswith(f"Usage: sinkbench {command}")
    assert "─" not in told


@pytest.mark.parametrize("given", [["race"], ["show"], ["doctor", "--stack"], []])
@pytest.mark.parametrize("token", ["x" * 5_000, "x " * 2_500, "--" + "x" * 5_000])
def test_a_refusal_does_not_repeat_a_page_of_what_was_given(given: list[str], token: str, sinkbench: Command) -> None:
    said = sinkbench.refused(*given, token)
    assert "xxx" in said or "x x x" in said
    assert len(said) < 2_500
    # What to do comes after it.
    assert not said.rstrip().endswith("...")


COUNTED = """
import ctypes, sys, threading
from sinkbench.cli.main import keep_few_heaps

if "told" in sys.argv and not keep_few_heaps():
    sys.exit(3)
together = threading.Barrier(8)

def work():
    together.wait()
    [bytearray(5000) for _ in range(1000)]
    together.wait()

for each in [threading.Thread(target=work) for _ in range(8)]:
    each.start()
for each in threading.enumerate()[1:]:
    each.join()
library = ctypes.CDLL(None)
library.malloc_info(0, ctypes.c_void_p.in_dll(library, "stdout"))
"""


def heaps(*arguments: str) -> int:
    """How many heaps a process of its own has after eight threads."""
    done = subprocess.run([sys.executable, "-c", COUNTED, *arguments], capture_output=True, text=True, check=False)
    if done.returncode == 3 or "malloc_info" in done.stderr:
        pytest.skip("this C library has other heaps than glibc")
    return done.stdout.count("<heap ")


def test_threads_share_few_heaps() -> None:
    assert heaps() > MOST_HEAPS
    assert heaps("told") <= MOST_HEAPS
