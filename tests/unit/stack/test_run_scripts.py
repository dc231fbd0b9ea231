"""The scripts that start services, without a service: a path may have any letters, and the caller any locale."""

import hashlib
import shlex
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from sinkbench.settings import CHECKOUT
from tests.support.commands import refuses, succeeded

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
    done = succeeded(start_worker(tmp_path, JAVA, CONNECT_PLUGINS=plugins, **locale))
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
    succeeded(start_worker(tmp_path, QUIET, CONNECT_USER_PLUGINS=str(plugins)))
    unpacked = tmp_path / "data" / "plugins-1"
    assert [each.name for each in unpacked.iterdir()] == ["vendor-1.0"]
    assert (unpacked / "vendor-1.0" / "vendor" / "lib" / "sink.jar").exists()


@pytest.mark.parametrize("kind", ["sha256", "sha512", "sha1"])
def test_an_archive_of_another_checksum_is_refused_with_both(plugins: Path, tmp_path: Path, kind: str) -> None:
    digest, wanted = of_archive(plugins, kind), hashlib.new(kind, b"another").hexdigest()
    (plugins / f"vendor-1.0.zip.{kind}").write_text(f"{wanted}  vendor-1.0.zip\n")
    done = refuses(start_worker(tmp_path, QUIET, CONNECT_USER_PLUGINS=str(plugins)))
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


# Prints what it is called with, and what it is told.
SAYS = '#!/bin/sh\necho "$(basename "$0") $*"\nenv | grep -E "^(KAFKA|CONNECT|ELASTICSEARCH|PGPASSWORD)" | sort\n'
# As PostgreSQL's programs do, of which one makes the data folder, and the other copies it.
INITDB = '#!/bin/sh\nmkdir -p "$2" && : > "$2/pg_hba.conf"\n'
RECEIVEWAL = f'{SAYS}[ -z "$PGPASSWORD" ] && exit 1\nexit 0\n'
BASEBACKUP = (
    f'{SAYS}while [ "$1" != --pgdata ]; do shift; done\n'
    'mkdir "$2" && : > "$2/pg_hba.conf" && : > "$2/ready" && echo old > "$2/topology.conf"\n'
)


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def started(service: str, **environment: str) -> list[str]:
    """Runs a service's script; what its program said."""
    told = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **environment}
    done = subprocess.run([CHECKOUT / service / "run"], env=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def secured(folder: Path, **told: str) -> dict[str, str]:
    """What a container is told: a file of variables, and files beside it that everybody may read."""
    folder.mkdir()
    for name in ("ca.pem", "node.pem", "node.key", "users"):
        (folder / name).write_text(f"{name} of it")
    variables = {"TLS_CA": "ca.pem", "TLS_CERTIFICATE": "node.pem", "TLS_KEY": "node.key"}
    given = {**{name: str(folder / file) for name, file in variables.items()}, **told}
    (folder / "environment").write_text("".join(f"{name}={shlex.quote(value)}\n" for name, value in given.items()))
    return {"SECRETS": str(folder / "environment")}


def test_a_file_of_secrets_wins_over_what_a_container_is_started_with(tmp_path: Path) -> None:
    told = secured(tmp_path / "it's secret", KAFKA_REPLICATION="3", KAFKA_PASSWORD="it's $HOME")  # noqa: S106
    program(tmp_path / "jdk" / "bin", "java", SAYS)
    given = {"JAVA_HOME": str(tmp_path / "jdk"), "KAFKA_LIBS": "libs", "KAFKA_DATA": str(tmp_path / "data of it")}
    given |= {"KAFKA_LISTEN": "127.0.0.1", "KAFKA_ADVERTISED_HOST": "127.0.0.1", "KAFKA_HEAP": "512m"}
    given |= {"KAFKA_PORT": "19092", "KAFKA_CONTROLLER_PORT": "19093", "KAFKA_REPLICATION": "1"}
    assert {"KAFKA_REPLICATION=3", "KAFKA_PASSWORD=it's $HOME"} <= set(started("kafka", **given, **told))


@pytest.mark.parametrize("listen", ["", "172.18.0.5"])
def test_a_secured_node_listens_for_others_and_trusts_their_authority(tmp_path: Path, listen: str) -> None:
    further = {"ELASTICSEARCH_USERS": str(tmp_path / "secret" / "users"), "ELASTICSEARCH_TRANSPORT_LISTEN": listen}
    told = secured(tmp_path / "secret", ELASTICSEARCH_TLS="true", ELASTICSEARCH_USER="me", **further)
    home, data = tmp_path / "home", tmp_path / "data"
    for name in ("jvm.options", "log4j2.properties"):
        program(home / "config", name, "")
    program(home / "bin", "elasticsearch", SAYS)
    given = {"ELASTICSEARCH_HOME": str(home), "ELASTICSEARCH_DATA": str(data), "ELASTICSEARCH_HEAP": "1g"}
    assert "ELASTICSEARCH_NODE=elasticsearch" in started("elasticsearch", **given, JAVA_OPTIONS="-Xint", **told)
    text = (data / "config" / "elasticsearch.yml").read_text()
    assert f"transport.host: {listen or '127.0.0.1'}\n" in text
    assert ("xpack.security.transport.ssl.verification_mode: certificate\n" in text) is bool(listen)
    key = data / "config" / "node.key"
    assert (key.read_text(), stat.S_IMODE(key.stat().st_mode)) == ("node.key of it", 0o600)


@pytest.fixture
def postgres(tmp_path: Path) -> dict[str, str]:
    """What PostgreSQL's script is told, with programs that stand in for its own."""
    programs = tmp_path / "bin"
    made = {"initdb": INITDB, "postgres": SAYS, "pg_receivewal": RECEIVEWAL, "pg_basebackup": BASEBACKUP}
    for name, text in made.items():
        program(programs, name, text)
    return {
        **{"POSTGRES_BIN": str(programs), "POSTGRES_DATA": str(tmp_path / "it's data"), "POSTGRES_PORT": "15432"},
        **{"POSTGRES_LISTEN": "127.0.0.1", "POSTGRES_DB": "db", "POSTGRES_USER": "me", "POSTGRES_PASSWORD": "o'pen"},
    }


def test_postgresql_alone_has_the_files_of_the_checkout_and_its_own_copy_of_a_key_that_others_can_read(
    postgres: dict[str, str], tmp_path: Path
) -> None:
    assert f"config_file={CHECKOUT}/postgres/postgresql.conf" in started("postgres", **postgres)[-1]
    assert not (Path(postgres["POSTGRES_DATA"]) / "topology.conf").exists()
    told = secured(tmp_path / "secret")
    said = started("postgres", **postgres, **told)
    own = Path(f"{postgres['POSTGRES_DATA']}.key")
    assert f"ssl_key_file={own}" in said[-1]
    assert (own.read_text(), stat.S_IMODE(own.stat().st_mode)) == ("node.key of it", 0o600)
    (tmp_path / "secret" / "node.key").chmod(0o600)
    assert f"ssl_key_file={tmp_path}/secret/node.key" in started("postgres", **postgres, **told)[-1]


def test_a_replica_copies_the_primary_once_and_then_starts_from_its_own_data(postgres: dict[str, str]) -> None:
    # Half a copy is begun anew.
    half = Path(f"{postgres['POSTGRES_DATA']}.new")
    half.mkdir()
    (half / "ready").touch()
    replica = {
        **postgres,
        **{"POSTGRES_NODE": "postgres-2", "POSTGRES_STANDBYS": "postgres-2", "POSTGRES_SYNCHRONOUS": "on"},
        **{"POSTGRES_PRIMARY_HOST": "127.0.0.1", "POSTGRES_PRIMARY_PORT": "15432", "POSTGRES_PORT": "15433"},
    }
    said = started("postgres", **replica)
    slot, copied = said[0], next(line for line in said if line.startswith("pg_basebackup"))
    assert slot.startswith("pg_receivewal")
    assert "--slot postgres_2 --create-slot --if-not-exists" in slot
    assert "--slot postgres_2 --wal-method stream" in copied
    assert not half.exists()
    # The password is in no list of processes.
    assert "o'pen" not in slot + copied + said[-1]
    data = Path(postgres["POSTGRES_DATA"])
    assert (data / "standby.signal").exists()
    text = (data / "topology.conf").read_text()
    # First as PostgreSQL's configuration quotes it, within it as libpq does.
    wanted = r"host=''127.0.0.1'' port=''15432'' user=''me'' password=''o\\''pen'' application_name=''postgres-2''"
    assert f"primary_conninfo = '{wanted}'" in text
    assert "primary_slot_name = 'postgres_2'" in text
    assert "synchronous_standby_names" not in text
    again = started("postgres", **{**replica, "POSTGRES_PRIMARY_PORT": "25432"})
    assert not any(line.startswith(("pg_basebackup", "pg_receivewal")) for line in again)
    assert "port=''25432''" in (data / "topology.conf").read_text()


def test_one_that_cannot_be_rewound_or_was_by_half_is_copied_anew(postgres: dict[str, str], tmp_path: Path) -> None:
    bin_folder = Path(postgres["POSTGRES_BIN"])
    program(bin_folder, "psql", f"{SAYS}[ ! -e {tmp_path}/away ]\n")
    program(bin_folder, "pg_rewind", f"{SAYS}[ ! -e {tmp_path}/broken ]\n")
    told = {**postgres, "POSTGRES_STANDBYS": "postgres-2", "POSTGRES_SYNCHRONOUS": "on"}
    told["POSTGRES_PRIMARY_FILE"] = str(tmp_path / "primary")
    started("postgres", **told)
    # Another node has taken the place of the first one, which was the primary.
    (tmp_path / "primary").write_text("postgres-2 127.0.0.1 15433\n")
    (tmp_path / "broken").touch()
    said = started("postgres", **told)
    for name in ("pg_rewind", "pg_basebackup"):
        assert any(line.startswith(name) for line in said)
    half = Path(f"{told['POSTGRES_DATA']}.rewinding")
    assert not half.exists()
    half.touch()
    assert any(line.startswith("pg_basebackup") for line in started("postgres", **told))
    assert not half.exists()
