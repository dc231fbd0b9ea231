"""What a stack file says, and what is said when it is wrong; no service is asked."""

import re
from pathlib import Path

import pytest
import trustme

from sinkbench import secrets
from sinkbench.errors import StackError
from sinkbench.services.access import Access
from sinkbench.stack.external import load_stack_file

SECRET = "hunter2-and-more"  # noqa: S105
LEAST = "kafka: {bootstrap: 'b1:9092,b2:9092'}\nconnect: {urls: ['http://c1:8083', 'http://c2:8083/']}\n"
WHOLE = """
kafka:
  bootstrap: b1:9092
  settings:
    security.protocol: SASL_SSL
    sasl.username: bench
    sasl.password: {env: KAFKA_PASSWORD}
    ssl.ca.location: ca.pem
    socket.timeout.ms: 5000
    socket.keepalive.enable: true
connect:
  urls: https://connect:8083/rest/
  workers: 3
  user: bench
  password: {file: password}
  ca: ca.pem
  metrics: [http://connect1:9404/metrics, http://connect2:9404/metrics]
  variables:
    POSTGRES_HOST: db.internal
    POSTGRES_PORT: 5432
    POSTGRES_PASSWORD: {env: KAFKA_PASSWORD}
elasticsearch:
  url: https://es:9200
  index: others
  api_key: {env: KAFKA_PASSWORD}
  ca: ca.pem
postgres:
  dsn: postgresql://bench@db/bench?sslmode=verify-full&sslrootcert=ca.pem
  password: {file: password}
pgbouncer:
  dsn: host=db port=6432 dbname=pgbouncer user=stats
loadgen: {urls: [http://gen1:18090, http://gen2:18090]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKA_PASSWORD", SECRET)
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("UNSET", raising=False)
    (tmp_path / "password").write_text("from-a-file\n")
    (tmp_path / "nothing").write_text("\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xfd\xfc")
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.pem")
    return tmp_path


def refusal(folder: Path, text: str) -> str:
    (folder / "mine.yaml").write_text(text)
    with pytest.raises(StackError) as raised:
        load_stack_file(folder / "mine.yaml")
    return str(raised.value).replace(f"{folder}/", "")


def test_the_least_file_takes_the_defaults(folder: Path) -> None:
    (folder / "mine.yaml").write_text(LEAST)
    file = load_stack_file(folder / "mine.yaml")
    found = file.endpoints()
    assert file.workers == 2
    assert found.kafka == "b1:9092,b2:9092"
    assert found.connect == {"connect-1": "http://c1:8083", "connect-2": "http://c2:8083"}
    assert found.shared
    assert (found.sinks, found.worker_ids, found.connect_access) == ({}, {}, Access())


def test_a_whole_file_gives_every_endpoint_with_its_secrets(folder: Path) -> None:
    (folder / "mine.yaml").write_text(WHOLE)
    file = load_stack_file(folder / "mine.yaml")
    found = file.endpoints()
    ca = folder / "ca.pem"
    assert file.workers == 3
    assert found.kafka_settings == {
        **{"security.protocol": "SASL_SSL", "sasl.username": "bench", "sasl.password": SECRET},
        **{"ssl.ca.location": str(ca), "socket.timeout.ms": "5000", "socket.keepalive.enable": "true"},
    }
    assert found.connect == {"connect-1": "https://connect:8083/rest"}
    assert found.connect_access == Access(user="bench", password="from-a-file", ca=ca)  # noqa: S106
    assert found.connect_metrics == {f"connect-{number}": f"http://connect{number}:9404/metrics" for number in (1, 2)}
    assert found.connect_variables == {
        **{"ELASTICSEARCH_INDEX": "others", "POSTGRES_HOST": "db.internal", "POSTGRES_PORT": "5432"},
        **{"POSTGRES_PASSWORD": SECRET, "POSTGRES_SSLMODE": "prefer", "POSTGRES_CA": ""},
        **dict.fromkeys(("ELASTICSEARCH_CA", "ELASTICSEARCH_PASSWORD", "ELASTICSEARCH_USER"), ""),
    }
    assert found.sinks["elasticsearch"].access == Access(api_key=SECRET, ca=ca)
    assert found.sinks["elasticsearch"].options == {"index": "others"}
    assert all(part in found.sinks["postgres"].address for part in (f"sslrootcert={ca}", "password=from-a-file"))
    assert found.loadgens == {"loadgen-1": "http://gen1:18090", "loadgen-2": "http://gen2:18090"}
    assert found.loadgen_access == Access()
    assert file.lines()["loadgen-2"] == f"{folder / 'mine.yaml'}:32"
    # Neither the file nor its endpoints print a secret.
    printed = repr(file) + str(file) + repr(found)
    assert [each for each in (SECRET, "from-a-file") if each in printed] == []
    assert secrets.redacted(f"{SECRET} from-a-file") == "*** ***"


AS_REFERENCE = r"write it as \{env: NAME\} or \{file: PATH\}"
CONNECT = "kafka: {bootstrap: b}\nconnect:\n  urls: 'http://c:1'\n"
ELASTIC = "elasticsearch:\n  url: http://e:1\n"
SASL = "kafka:\n  bootstrap: b:1\n  settings:\n    {}\nconnect: {{urls: ['http://c:1']}}\n"
POSTGRES = "postgres:\n  dsn: host=db\n  password: {}\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", r"^mine.yaml:1: a stack file must be a mapping"),
        ("connect: {urls: ['http://c:1']}", r"^mine.yaml:1: stack file has no 'kafka', which it needs"),
        (LEAST + "postgress: {}\n", r"^mine.yaml:3: unknown key 'postgress' in stack file; did you mean 'postgres'\?"),
        (LEAST + f"elasticsearch: https://me:{SECRET}@e\n", r"mine.yaml:3: elasticsearch must be a mapping"),
        (LEAST.replace("http://c1:8083", "c1:8083"), r"mine.yaml:2: connect.urls must be an address like"),
        (LEAST.replace("http://c1", f"http://me:{SECRET}@c1"), rf"mine.yaml:2: connect.urls must not .*{AS_REFERENCE}"),
        (LEAST.replace("http://c1", f"me:{SECRET}@c1"), rf"mine.yaml:2: connect.urls must not .*{AS_REFERENCE}"),
        (LEAST.replace("c2:8083/", "c1:8083"), r"mine.yaml:2: urls lists http://c1:8083 twice"),
        ("kafka: {bootstrap: b}\nconnect: {urls: []}", r"mine.yaml:2: connect.urls must not be empty"),
        (CONNECT + "  workers: 0", r"mine.yaml:4: connect.workers must be at least 1, found 0"),
        (CONNECT + "  user: x", r"mine.yaml:4: connect has 'user' and no 'pass"),
        (CONNECT + "  password: {env: KAFKA_PASSWORD}", r"mine.yaml:4: connect has 'password' and no 'user'"),
        (LEAST + POSTGRES.format(SECRET), rf"^mine.yaml:5: postgres.password must not stand .*; {AS_REFERENCE}"),
        (LEAST + POSTGRES.format("{env: UNSET}"), r"mine.yaml:5: .*environment variable UNSET is not set; set it"),
        (LEAST + POSTGRES.format("{env: EMPTY}"), r"mine.yaml:5: .*environment variable EMPTY is empty; set it"),
        (LEAST + POSTGRES.format("{file: absent}"), r"mine.yaml:5: postgres.password: absent: there is no such file"),
        (LEAST + POSTGRES.format("{file: nothing}"), r"mine.yaml:5: postgres.password: nothing: is empty"),
        (LEAST + POSTGRES.format("{file: bytes}"), r"mine.yaml:5: postgres.password: bytes:1: is not UTF-8"),
        (LEAST + f"postgres: {{dsn: 'host=db password={SECRET}'}}", rf"yaml:3: postgres.dsn must .*{AS_REFERENCE}"),
        (LEAST + f"postgres: {{dsn: 'postgresql://me:{SECRET}@db/x'}}", r"mine.yaml:3: postgres.dsn must not hold a"),
        (LEAST + f"postgres: {{dsn: 'db {SECRET}'}}", r"mine.yaml:3: postgres.dsn must be a connection string like"),
        (LEAST + "postgres: {dsn: 'host=db sslrootcert=nope.pem'}", r"yaml:3: postgres.dsn: nope.pem: there is no"),
        (LEAST + "pgbouncer: {dsn: 'host=db dbname=x'}", r"mine.yaml:3: pgbouncer.dsn must name dbname=pgbouncer"),
        (LEAST + ELASTIC + "  ca: password", r"mine.yaml:5: elasticsearch.ca: password: holds no cert"),
        (
            LEAST + ELASTIC + "  user: x\n  password: {env: KAFKA_PASSWORD}\n  api_key: {env: KAFKA_PASSWORD}",
            r"mine.yaml:7: elasticsearch has both 'user' and 'api_key'",
        ),
        (LEAST + "elasticsearch: {url: 'http://e:1', index: Tides}", r"mine.yaml:3: elasticsearch.index must match"),
        (SASL.format("acks: 1"), r"mine.yaml:4: kafka.settings.acks is not a setting for SASL, TLS or addresses"),
        (
            SASL.format(f"sasl.jaas.config: x {SECRET};"),
            "sasl.jaas.config is .* Java's .*; write sasl.username and sasl.p",
        ),
        (
            SASL.format("ssl.truststore.location: a.jks"),
            "yaml:4: .*truststore.location is .*; write ssl.ca.location, a",
        ),
        (SASL.format(f"ssl.truststore.password: {SECRET}"), "yaml:4: .*truststore.password is .*; leave it out"),
        *(
            (SASL.format(f"{name}: {SECRET}"), rf"mine.yaml:4: kafka.settings.{name} must not .*{AS_REFERENCE}")
            for name in ("sasl.password", "ssl.key.password", "sasl.oauthbearer.client.secret")
        ),
        (
            SASL.format(f"sasl.password: {SECRET}\n    sasl.password: x"),
            r'mine.yaml:5: .*duplicate key "sasl.password"$',
        ),
        (
            f"{CONNECT}  variables:\n    PGPASSWORD: {SECRET}",
            rf"mine.yaml:5: connect.variables.PGPASSWORD must not .*{AS_REFERENCE}",
        ),
        (
            f"{CONNECT}  variables:\n    URL: jdbc:x://me:{SECRET}@db",
            rf"mine.yaml:5: connect.variables.URL holds a password; {AS_REFERENCE}",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line_and_no_secret_is_shown(folder: Path, text: str, complaint: str) -> None:
    said = refusal(folder, text)
    assert re.search(complaint, said), said
    assert SECRET not in said
    assert SECRET[:8] not in said


def test_several_mistakes_are_shown_at_once_in_the_files_order(folder: Path) -> None:
    said = refusal(folder, "kafka: {bootstrap: b, x: 1}\nconnect: {urls: ['c']}\npgbouncer: {}\n").splitlines()
    assert [line.split(":")[1] for line in said] == ["1", "2", "3"]
    with pytest.raises(StackError, match=r"other.yaml: there is no such stack file"):
        load_stack_file(folder / "other.yaml")
