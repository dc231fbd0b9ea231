"""What a user may set, and how a mistake is answered."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from sinkbench.errors import SettingsError
from sinkbench.settings import load_settings, reachable_by_others

pytestmark = pytest.mark.usefixtures("no_settings")


def test_one_setting_moves_every_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = load_settings(tmp_path).ports()
    monkeypatch.setenv("SINKBENCH_PORT_OFFSET", "1000")
    after = load_settings(tmp_path).ports()
    assert [number + 1000 for number, _, _ in before] == [number for number, _, _ in after]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"WORKERS": "0"}, "SINKBENCH_WORKERS=0"),
        ({"WORKERS": "three"}, "SINKBENCH_WORKERS=three"),
        ({"POSTGRES_PORT": "80"}, "SINKBENCH_POSTGRES_PORT=80"),
        ({"KAFKA_PORT": "70000"}, "SINKBENCH_KAFKA_PORT=70000"),
        ({"KAFKA_PORT": "15432"}, "port 15432.*SINKBENCH_KAFKA_PORT.*SINKBENCH_POSTGRES_PORT"),
        ({"LIVE_PORT": "19092"}, "port 19092.*SINKBENCH_KAFKA_PORT.*SINKBENCH_LIVE_PORT"),
        ({"CONNECT_PORT": "60000", "PORT_OFFSET": "9000"}, "SINKBENCH_PORT_OFFSET=9000.*SINKBENCH_CONNECT_PORT"),
        ({"WORKER": "5"}, "SINKBENCH_WORKER.*SINKBENCH_WORKERS"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], said: str
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(f"SINKBENCH_{name}", value)
    with pytest.raises(SettingsError, match=said):
        load_settings(tmp_path)


@pytest.mark.parametrize(("name", "value"), [("KAFKA_HEAP", "9x"), ("JAVA_OPTIONS", "Xint")])
def test_a_text_of_the_wrong_form_is_refused_with_one_that_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"SINKBENCH_{name}", value)
    with pytest.raises(SettingsError) as refused:
        load_settings(tmp_path)
    said, _, example = str(refused.value).partition(": must be such as ")
    assert said == f"SINKBENCH_{name}={value}"
    monkeypatch.setenv(f"SINKBENCH_{name}", example.split(" or ")[0])
    load_settings(tmp_path)


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("SINKBENCH_WORKERS=4\nSINKBENCH_KAFKA_HEAP=1g\n")
    monkeypatch.setenv("SINKBENCH_WORKERS", "5")
    found = load_settings(tmp_path)
    assert (found.workers, found.kafka_heap) == (5, "1g")


def test_a_folder_behind_a_closed_one_is_not_reachable(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "inside").mkdir(parents=True)
    closed.chmod(0o700)
    assert not reachable_by_others(closed / "inside" / "not-yet-there")


def test_an_account_without_a_name_goes_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nameless = Mock(side_effect=OSError("No username set in the environment"))
    monkeypatch.setattr("sinkbench.settings.getpass.getuser", nameless)
    monkeypatch.setattr("sinkbench.settings.os.geteuid", lambda: 54_321)
    assert load_settings(tmp_path).user == "54321"
