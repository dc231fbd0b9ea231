"""Settings of the Kafka client are read strictly, and no message ever shows the value of one."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loadgen.cli as cli
from loadgen.clientconfig import format_client_config, hide, parse_client_config
from loadgen.engine import run
from loadgen.errors import OptionsError
from loadgen.options import Load

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
    with pytest.raises(OptionsError, match=r"client-config, line 3: ") as refused:
        parse_client_config(f"ssl.key.password=x\n\n{line}\n")
    assert words in str(refused.value)
    assert SECRET not in str(refused.value)
    assert "\n" not in str(refused.value)


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
        ({"security.protocol": SECRET}, "security.protocol"),
        ({"security.protocol": "ssl", "ssl.ca.location": f"/{SECRET}"}, "ssl.ca.location"),
        ({"security.protocol": "ssl", "ssl.key.pem": SECRET}, "ssl.key.pem"),
    ],
)
def test_settings_that_the_client_cannot_use_are_one_line_that_names_them(settings: dict[str, str], words: str) -> None:
    with pytest.raises(OptionsError, match=r"client-config: the Kafka client cannot use its settings") as refused:
        run(Load(bootstrap="127.0.0.1:9", topic="t", count=1), client_settings=settings)
    assert words in str(refused.value)
    assert SECRET not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("command", [["run", "--bootstrap", "b:1", "--topic", "t", "--count", "1"], ["serve"]])
def test_a_file_that_cannot_be_used_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "wrong").write_text(f"group.id={SECRET}\n")
    for name, words in {"none": "there is no such file", "wrong": "wrong, line 1: group.id"}.items():
        assert cli.main([*command, "--client-config", str(tmp_path / name)]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
        assert SECRET not in error
