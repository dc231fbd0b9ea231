"""The scripts that start services, without a service: a path may have any letters, and the caller any locale."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from sinkbench.settings import CHECKOUT
from tests.unit.stack.test_run_of_nodes import program

# Stands in for Java: prints its locale, and the worker's properties, its last argument.
JAVA = '#!/bin/sh\necho "LC_ALL=$LC_ALL"\nfor last; do :; done\ncat "$last"\n'
LOCALES: list[dict[str, str]] = [{}, {"LANG": "C"}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {"LC_ALL": "C.UTF-8"}]


def start_worker(folder: Path, java: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Runs the worker's script with something that stands in for Java."""
    program(folder / "jdk" / "bin", "java", java)
    bare = {
        **{"PATH": "/usr/bin:/bin", "JAVA_HOME": str(folder / "jdk"), "JAVA_OPTIONS": "-Xlog:disable"},
        **{"CONNECT_PLUGINS": "/opt/plugins", "CONNECT_USER_PLUGINS": str(CHECKOUT / "connect" / "plugins")},
        **{"CONNECT_BASE_PORT": "1", "CONNECT_METRICS_BASE_PORT": "1", "CONNECT_WORKER": "1"},
        **{"CONNECT_HEAP": "1m", "CONNECT_LISTEN": "127.0.0.1", "CONNECT_METRICS_AGENT": "agent.jar"},
        **{"CONNECT_DATA": str(folder / "data"), "KAFKA_LIBS": "libs"},
    }
    return subprocess.run([CHECKOUT / "connect" / "run"], env={**bare, **environment}, capture_output=True, check=False)


@pytest.mark.parametrize("locale", LOCALES, ids=str)
def test_a_worker_finds_plugins_in_a_folder_of_any_name_in_any_locale(locale: dict[str, str], tmp_path: Path) -> None:
    plugins = f"{tmp_path}/büro test/\\x/😀/plugins"
    done = start_worker(tmp_path, JAVA, CONNECT_PLUGINS=plugins, **locale)
    assert done.returncode == 0, done.stderr.decode()
    said = done.stdout.decode("ascii").splitlines()
    assert said[0] == "LC_ALL=C.UTF-8"
    (path,) = (line.removeprefix("plugin.path=") for line in said if line.startswith("plugin.path="))
    # As Java reads a properties file.
    assert path.encode("ascii").decode("unicode_escape").encode("utf-16", "surrogatepass").decode("utf-16") == plugins


# Stands in for Java where plugins are unpacked: what makes their manifests has nothing to say.
QUIET = "#!/bin/sh\nexit 0\n"


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """A folder with a vendor's archive."""
    folder = tmp_path / "plugins"
    (tmp_path / "content" / "vendor" / "lib").mkdir(parents=True)
    (tmp_path / "content" / "vendor" / "lib" / "sink.jar").write_bytes(b"a jar")
    shutil.make_archive(str(folder / "vendor-1.0"), "zip", tmp_path / "content")
    return folder


def of_archive(plugins: Path, kind: str) -> str:
    return hashlib.new(kind, (plugins / "vendor-1.0.zip").read_bytes()).hexdigest()


@pytest.mark.parametrize("kind", ["sha256", "sha512", "sha1"])
@pytest.mark.parametrize("form", ["{}", "{}\n", "{}  vendor-1.0.zip\n", "SHA (vendor-1.0.zip) = {}\n"])
@pytest.mark.parametrize("upper", [False, True])
def test_an_archive_that_matches_is_unpacked(plugins: Path, tmp_path: Path, kind: str, form: str, upper: bool) -> None:
    digest = of_archive(plugins, kind)
    (plugins / f"vendor-1.0.zip.{kind}").write_text(form.format(digest.upper() if upper else digest))
    done = start_worker(tmp_path, QUIET, CONNECT_USER_PLUGINS=str(plugins))
    assert done.returncode == 0, done.stderr.decode()
    unpacked = tmp_path / "data" / "plugins-1"
    assert [each.name for each in unpacked.iterdir()] == ["vendor-1.0"]
    assert (unpacked / "vendor-1.0" / "vendor" / "lib" / "sink.jar").exists()


@pytest.mark.parametrize("kind", ["sha256", "sha512", "sha1"])
def test_an_archive_of_another_checksum_is_refused_with_both(plugins: Path, tmp_path: Path, kind: str) -> None:
    digest, wanted = of_archive(plugins, kind), hashlib.new(kind, b"another").hexdigest()
    (plugins / f"vendor-1.0.zip.{kind}").write_text(f"{wanted}  vendor-1.0.zip\n")
    done = start_worker(tmp_path, QUIET, CONNECT_USER_PLUGINS=str(plugins))
    assert done.returncode == 2
    (said,) = done.stderr.decode().splitlines()
    assert said.startswith(f"connect/run: vendor-1.0.zip: its {kind.upper().replace('SHA', 'SHA-')} is {digest}, ")
    assert f"vendor-1.0.zip.{kind} says {wanted}; fetch the archive again" in said
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("vendor-1.0.zip", "", "holds no SHA-256; put the vendor's there"),
        ("vendor-1.0.zip", f"{'0' * 65}", "holds no SHA-256; put the vendor's there"),
        ("vendor-2.0.zip", "0" * 64, "there is no vendor-2.0.zip beside it"),
    ],
)
def test_a_file_without_a_checksum_or_without_its_archive_is_named(
    plugins: Path, tmp_path: Path, name: str, content: str, said: str
) -> None:
    (plugins / f"{name}.sha256").write_text(content)
    done = start_worker(tmp_path, QUIET, CONNECT_USER_PLUGINS=str(plugins))
    assert (done.returncode, done.stderr.decode()) == (2, f"connect/run: {name}.sha256: {said}\n")
