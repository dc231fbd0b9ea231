"""What `sinkbench kubernetes` refuses before it asks a cluster."""

from pathlib import Path

import pytest

from tests.support.commands import Command


def test_what_is_no_overlay_is_refused_with_the_nearest(sinkbench: Command) -> None:
    assert "did you mean 'plain'?" in sinkbench.refused("kubernetes", "apply", "--overlay", "plian")


@pytest.mark.parametrize("overlay", [[], ["--overlay", "mine"]])
def test_an_overlay_of_ours_or_a_folder_of_yours_needs_kubectl_and_the_line_says_what_to_do(
    overlay: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sinkbench: Command
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kustomization.yaml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no command kubectl; install it" in sinkbench.refused("kubernetes", "apply", *overlay)
