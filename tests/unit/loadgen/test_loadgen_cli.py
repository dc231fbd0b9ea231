"""The command says in one line what is wrong; its exit code says how it ended."""

import json
from typing import Any

import pytest

import loadgen.cli as cli
from loadgen.options import Load
from loadgen.summary import Summary
from tests.support.summaries import summary

ARGUMENTS = ["run", "--bootstrap", "127.0.0.1:9", "--topic", "tides", "--count", "5"]


def running(monkeypatch: pytest.MonkeyPatch, **result: Any) -> list[Load]:
    """Puts a load that comes to `result` in the place of the real one; returns the loads it was asked for."""
    loads: list[Load] = []

    def run(load: Load, *_: Any, **__: Any) -> Summary:
        loads.append(load)
        return summary(load.model_dump(), **result)

    monkeypatch.setattr(cli, "run_load", run)
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    return loads


@pytest.mark.parametrize(
    ("result", "code"),
    [({}, 0), ({"failed": 1}, 1), ({"interrupted": True}, 130), ({"interrupted": True, "failed": 2}, 130)],
)
def test_the_exit_code_tells_how_it_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], result: dict[str, Any], code: int
) -> None:
    running(monkeypatch, **result)
    assert cli.main([*ARGUMENTS, "--no-progress"]) == code
    output = capsys.readouterr()
    assert json.loads(output.out)["failed"] == result.get("failed", 0)
    assert output.err == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Missing command"),
        ([*ARGUMENTS, "--akcs", "1"], "--akcs"),
        ([*ARGUMENTS, "--acks", "2"], "acks: found '2'"),
        ([*ARGUMENTS, "--keys", "many"], "--keys"),
    ],
)
def test_unusable_input_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert cli.main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("loadgen: ")
    assert words in output.err
    assert output.err.count("\n") == 1


def test_options_reach_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = running(monkeypatch)
    options = ["--keys", "3", "--rate", "7", "--run", "r", "--first-seq", "9", "--acks", "1", "--linger-ms", "2.5"]
    assert cli.main([*ARGUMENTS, *options, "--no-progress"]) == 0
    assert loads[0].model_dump(exclude_defaults=True) == {
        "bootstrap": "127.0.0.1:9", "topic": "tides", "count": 5,
        "keys": 3, "rate": 7, "run": "r", "first_seq": 9, "acks": "1", "linger_ms": 2.5,
    }  # fmt: skip
