"""What `sinkbench kubernetes` refuses before it asks a cluster."""

from pathlib import Path

import pytest

from tests.support.commands import Command


def test_what_is_no_overlay_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'plain'?" in Command(capsys).refused("kubernetes", "apply", "--overlay", "plian")


def test_without_kubectl_the_line_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no command kubectl; install it" in Command(capsys).refused("kubernetes", "apply")


def test_a_folder_of_yours_is_found_from_where_you_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kustomization.yaml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no command kubectl" in Command(capsys).refused("kubernetes", "apply", "--overlay", "mine")
