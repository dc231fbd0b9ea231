"""The command says in one line what is wrong; its exit code says how it ended."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loadgen.cli as cli
from loadgen.client import format_client_config, hide, parse_client_config
from loadgen.engine import run
from loadgen.errors import OptionsError
from loadgen.options import Load
from loadgen.summary import Summary
from tests.support.commands import Command
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
    monkeypatch: pytest.MonkeyPatch, loadgen_command: Command, result: dict[str, Any], code: int
) -> None:
    running(monkeypatch, **result)
    ended = loadgen_command(*ARGUMENTS, "--no-progress")
    assert (ended.code, json.loads(ended.out)["failed"], ended.err) == (code, result.get("failed", 0), "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Missing command"),
        ([*ARGUMENTS, "--akcs", "1"], "--akcs"),
        ([*ARGUMENTS, "--acks", "2"], "acks: found '2'"),
        ([*ARGUMENTS, "--delimiter", ";"], "name its file by --records"),
        ([*ARGUMENTS, "--no-header"], "name its file by --records"),
    ],
)
def test_unusable_input_is_one_line_and_exit_code_2(loadgen_command: Command, arguments: list[str], words: str) -> None:
    code, out, err = loadgen_command(*arguments)
    assert (code, out, err.count("\n"), err.startswith("loadgen: ")) == (2, "", 1, True)
    assert words in err


def test_options_reach_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = running(monkeypatch)
    options = ["--keys", "3", "--rate", "7", "--run", "r", "--first-seq", "9", "--acks", "1", "--linger-ms", "2.5"]
    options += ["--clock-ahead-us", "250"]
    assert cli.main([*ARGUMENTS, *options, "--no-progress"]) == 0
    assert loads[0].model_dump(exclude_defaults=True) == {
        "bootstrap": "127.0.0.1:9", "topic": "tides", "count": 5,
        "keys": 3, "rate": 7, "run": "r", "first_seq": 9, "clock_ahead_us": 250.0, "acks": "1", "linger_ms": 2.5,
    }  # fmt: skip


def test_a_csv_is_read_as_its_options_describe_it(
    monkeypatch: pytest.MonkeyPatch, loadgen_command: Command, tmp_path: Path
) -> None:
    running(monkeypatch)
    path = tmp_path / "gauges.csv"
    path.write_text("1;2,5;3\n4;5,5;6\n")
    ended = loadgen_command(*ARGUMENTS, "--records", path, "--delimiter", ";", "--no-header", "--no-progress")
    assert (ended.code, "columns: 3, delimiter: ';'" in ended.err) == (0, True)


SECRET = "hunter2-hunter2"  # noqa: S105


def test_lines_are_settings_and_the_rest_is_left_out() -> None:
    text = f"# for the cluster\n\n security.protocol = SASL_SSL \nsasl.password={SECRET}=#1\r\nclient.rack=r1\n"
    assert parse_client_config(text) == {
        "security.protocol": "SASL_SSL", "sasl.password": f"{SECRET}=#1", "client.rack": "r1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"bootstrap.servers={SECRET}", "bootstrap.servers is set by loadgen itself"),
        (f"acks={SECRET}", "is not key=value"),
        (f"plugin.library.paths={SECRET}", "leave it out"),
        (SECRET, "is not key=value"),
        (f"{SECRET}==", "is not key=value"),
        (f"ssl.key.password={SECRET}", "given a second time"),
    ],
)
def test_a_line_that_is_not_taken_is_named_by_its_number_and_not_shown(line: str, words: str) -> None:
    with pytest.raises(OptionsError, match=rf"^client-config, line 3: .*{words}.*\Z") as refused:
        parse_client_config(f"ssl.key.password=x\n\n{line}\n")
    assert SECRET not in str(refused.value)


@given(st.dictionaries(st.sampled_from(["sasl.username", "sasl.password", "ssl.key.password"]), st.text()))
def test_what_is_written_is_read_again_or_refused(settings: dict[str, str]) -> None:
    try:
        text = format_client_config(settings)
    except OptionsError:
        assert any(value != value.strip() or "\n" in value for value in settings.values())
    else:
        assert parse_client_config(text) == settings


def test_a_value_that_the_client_repeats_is_hidden_and_the_name_of_its_setting_is_not() -> None:
    settings = {"security.protocol": "ssl", "sasl.password": SECRET}
    text = f'ssl.ca.location failed:\n"{SECRET}", protocol "ssl", x{SECRET}x'
    assert hide(text, settings) == 'ssl.ca.location failed: "***", protocol "***", x***x'


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sasl.nonsense": SECRET}, "sasl.nonsense"),
        ({"security.protocol": "ssl", "ssl.ca.location": f"/{SECRET}"}, "ssl.ca.location"),
        ({"security.protocol": "ssl", "ssl.key.pem": SECRET}, "ssl.key.pem"),
    ],
)
def test_settings_that_the_client_cannot_use_are_one_line_that_names_them(settings: dict[str, str], words: str) -> None:
    with pytest.raises(OptionsError, match=rf"^client-config: .* cannot use its settings.*{words}.*\Z") as refused:
        run(Load(bootstrap="127.0.0.1:9", topic="t", count=1), client_settings=settings)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("command", [["run", "--bootstrap", "b:1", "--topic", "t", "--count", "1"], ["serve"]])
def test_a_file_that_cannot_be_used_is_one_line_and_exit_code_2(
    loadgen_command: Command, tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "wrong").write_text(f"group.id={SECRET}\n")
    for name, words in {"none": "there is no such file", "wrong": "wrong, line 1: group.id"}.items():
        error = loadgen_command.refused(*command, "--client-config", tmp_path / name)
        assert (words in error, SECRET in error) == (True, False)
