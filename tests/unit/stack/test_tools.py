"""How the programs that the local stack needs are found."""

from pathlib import Path

import pytest

from sinkbench.errors import StackError
from sinkbench.stack.tools import add_plugin, checksum, find_java


def jdk(home: Path, version: str, modules: str = "java.base jdk.incubator.vector") -> Path:
    (home / "bin").mkdir(parents=True)
    for program in ("java", "javac"):
        (home / "bin" / program).touch(mode=0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


@pytest.mark.parametrize(
    ("version", "installed", "variable", "taken"),
    [
        # The newest that is installed, unless JAVA_HOME has one that is new enough; at last the one on PATH.
        ("20", {"a": "17.0.15", "b": "25.0.3", "c": "21.0.1"}, "JAVA_HOME", "b"),
        ("21", {"a": "25"}, "JAVA_HOME", "mine"),
        ("22", {}, "PATH", "mine"),
    ],
)
def test_one_jdk_of_several_is_taken(
    tmp_path: Path, version: str, installed: dict[str, str], variable: str, taken: str
) -> None:
    mine = jdk(tmp_path / "mine", version)
    homes = {name: jdk(tmp_path / "jvm" / name, each) for name, each in installed.items()}
    # One without the vector module is passed over.
    jdk(tmp_path / "jvm" / "small", "26", modules="java.base")
    value = mine / "bin" if variable == "PATH" else mine
    assert find_java({variable: str(value)}, tmp_path / "jvm") == {**homes, "mine": mine}[taken]


def test_no_usable_jdk_is_an_error_that_lists_what_was_found(tmp_path: Path) -> None:
    jdk(tmp_path / "old", "17.0.1")
    with pytest.raises(StackError, match=r"Java 21 or newer.*17 in .*old"):
        find_java({"PATH": ""}, tmp_path)


def test_a_plugin_of_a_plan_is_added_unless_one_of_its_name_is_there(tmp_path: Path) -> None:
    plugins, folder = tmp_path / "connect" / "plugins", tmp_path / "mine" / "sink-2.0"
    plugins.mkdir(parents=True)
    folder.mkdir(parents=True)
    (folder / "sink.jar").touch()
    (tmp_path / "plugin.zip").touch()
    for what in (str(folder), "plugin.zip"):
        path = plugins / Path(what).name
        assert add_plugin(what, tmp_path, lambda line: None) == (path, True)
        assert add_plugin(what, tmp_path, lambda line: None) == (path, False)
        # What differs between two builds of one version.
        before = checksum(path)
        next(path.iterdir() if path.is_dir() else iter([path])).write_text("another build")
        assert checksum(path) != before
    assert (plugins / "sink-2.0" / "sink.jar").exists()
    assert len(list(plugins.parent.iterdir())) == 1
