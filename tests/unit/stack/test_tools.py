"""How the programs that the local stack needs are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from sinkbench.errors import StackError
from sinkbench.stack.tools import find_go, find_java, find_postgres

MODULES = "java.base jdk.incubator.vector"


def jdk(home: Path, version: str, modules: str = MODULES) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch(mode=0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


def test_the_newest_jdk_is_taken(tmp_path: Path) -> None:
    jdk(tmp_path / "a-17", "17.0.15")
    newest = jdk(tmp_path / "b-25", "25.0.3")
    jdk(tmp_path / "c-21", "21.0.1")
    assert find_java({}, tmp_path) == newest


def test_java_home_goes_first_if_it_is_new_enough(tmp_path: Path) -> None:
    mine = jdk(tmp_path / "mine", "21")
    jdk(tmp_path / "jvm" / "other", "25")
    assert find_java({"JAVA_HOME": str(mine)}, tmp_path / "jvm") == mine


def test_a_java_home_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = jdk(tmp_path / "old", "17")
    other = jdk(tmp_path / "jvm" / "other", "25")
    assert find_java({"JAVA_HOME": str(old)}, tmp_path / "jvm") == other


def test_the_one_on_path_is_the_last_resort(tmp_path: Path) -> None:
    mine = jdk(tmp_path / "mine", "22")
    assert find_java({"PATH": str(mine / "bin")}, tmp_path / "jvm") == mine


def test_a_jdk_without_the_vector_module_is_passed_over(tmp_path: Path) -> None:
    jdk(tmp_path / "small", "25", modules="java.base")
    whole = jdk(tmp_path / "whole", "21")
    assert find_java({}, tmp_path) == whole


def test_no_usable_jdk_is_an_error_that_lists_what_was_found(tmp_path: Path) -> None:
    jdk(tmp_path / "old", "17.0.1")
    with pytest.raises(StackError, match=r"Java 21 or newer.*17 in .*old"):
        find_java({"PATH": ""}, tmp_path)


def postgres(root: Path, version: str) -> Path:
    folder = root / version / "bin"
    folder.mkdir(parents=True)
    (folder / "postgres").touch()
    (folder / "initdb").touch()
    return folder


def test_the_newest_postgresql_is_taken(tmp_path: Path) -> None:
    postgres(tmp_path, "9")
    newest = postgres(tmp_path, "17")
    postgres(tmp_path, "15")
    assert find_postgres(tmp_path) == newest


def test_a_postgresql_that_is_too_old_is_an_error(tmp_path: Path) -> None:
    postgres(tmp_path, "12")
    with pytest.raises(StackError, match=r"PostgreSQL 13.*found 12"):
        find_postgres(tmp_path)


def go(folder: Path, version: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "go").write_text(f"#!/bin/sh\necho {version}\n")
    (folder / "go").chmod(0o755)
    return folder


def test_go_on_path_goes_before_the_usual_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, usual = go(tmp_path / "mine", "go1.24.2"), go(tmp_path / "usual", "go1.26.8")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_go(usual) == usual / "go"
    monkeypatch.setenv("PATH", str(mine))
    assert find_go(usual) == mine / "go"


@pytest.mark.parametrize(("version", "said"), [("go1.19.8", "found go1.19.8 at"), ("", "found one that does not run")])
def test_a_go_that_is_too_old_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, said: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StackError, match=f"Go 1.23 or newer builds toxiproxy.*{said}.*install the package golang-go"):
        find_go(go(tmp_path / "bin", version))
    with pytest.raises(StackError, match="found none; install the package golang-go"):
        find_go(tmp_path / "nowhere")
