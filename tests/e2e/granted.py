"""A secured stack on which users have the rights that the commands of docs/where.md give them, and no more."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from sinkbench.limits.programs import java_settings
from sinkbench.settings import CHECKOUT
from sinkbench.sinks.elasticsearch.service import ready
from sinkbench.stack.external import ExternalStack
from sinkbench.stack.home import Home
from sinkbench.stack.local import LocalStack
from sinkbench.stack.security import kept_security
from sinkbench.stack.tools import find_java
from tests.e2e.ownstacks import own_stack
from tests.support.commands import succeeded
from tests.support.waiting import until

PAGE = (CHECKOUT / "docs" / "where.md").read_text("utf-8").partition("### Which rights it needs\n")[2]
ACLS, SQL, ROLE = (block.partition("\n")[2] for block in re.findall(r"```(.+?)```", PAGE, re.DOTALL)[:3])
GRANT, *GRANTS = ACLS.splitlines(keepends=True)
SECRET, STATS = re.findall("PASSWORD '(.+)'", SQL)[0], re.findall("`(stats_users = .+?)`", PAGE)[0]
VARIABLES = {
    # Controllers show certificates.
    "KAFKA_SETTINGS": "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    " super.users=User:sinkbench ssl.principal.mapping.rules=RULE:^.*$/sinkbench/",
    "CONNECT_SETTINGS": "consumer.sasl.jaas.config=${env:CONNECT_LOGIN}",
    "CONNECT_LOGIN": java_settings({"sasl.username": "connect", "sasl.password": SECRET})["sasl.jaas.config"],
}
CLUSTERS = """
kafka: {bootstrap: "127.0.0.1:<kafka>", settings: {security.protocol: SASL_SSL, sasl.mechanism: SCRAM-SHA-512,
  sasl.username: bench, sasl.password: {file: secret}, ssl.ca.location: ca.pem}}
connect: {urls: ["https://127.0.0.1:<connect>"], user: sinkbench, password: {file: connect}, ca: ca.pem, variables: {
  POSTGRES_DB: bench, POSTGRES_USER: bench, POSTGRES_PASSWORD: {file: secret}, ELASTICSEARCH_CA: {file: ca},
  ELASTICSEARCH_USER: bench, ELASTICSEARCH_PASSWORD: {file: elasticsearch}}}
elasticsearch: {url: "https://127.0.0.1:<elasticsearch>", user: bench, password: {file: elasticsearch}, ca: ca.pem}
postgres: {dsn: "host=127.0.0.1 port=<postgres> dbname=bench user=bench", password: {file: secret}}
pgbouncer: {dsn: "host=127.0.0.1 port=<pgbouncer> dbname=pgbouncer user=stats", password: {file: secret}}
"""


@contextmanager
def granted(folder: Path) -> Iterator[LocalStack]:
    """The stack, and in `folder` the stack file clusters.yaml of the page's users. Its own user may do anything."""
    with own_stack("stack of rights", 3500, SECURITY="on", WORKERS="1") as ours:
        stack, home = LocalStack(ours.settings, variables=VARIABLES), Home(ours.settings)
        stack.up(lambda line: None)
        security, ends = kept_security(home.security), stack.endpoints
        assert security is not None
        scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
        users = [UserScramCredentialUpsertion(name, scram, SECRET.encode()) for name in ("bench", "connect")]
        admin = AdminClient({**ends.kafka_settings, "bootstrap.servers": ends.kafka})
        _ = [done.result() for done in admin.alter_user_scram_credentials(users).values()]
        as_administrator(stack, ACLS)
        for where, text in (("", "CREATE DATABASE bench"), (" dbname=bench", SQL)):
            execute(f"{ends.sinks['postgres'].address}{where}", text)
        # This Elasticsearch keeps no roles and users itself: they come from files.
        config, pooler = home.data / "elasticsearch" / "config", home.data / "pgbouncer"
        (config / "roles.yml").write_text(json.dumps({"sinkbench": json.loads(ROLE.splitlines()[1])}))
        (config / "users_roles").write_text("superuser:sinkbench\nsinkbench:bench\n")
        users_file = (config / "users").read_text()
        (config / "users").write_text(users_file + users_file.replace("sinkbench", "bench", 1))
        (pooler / "users.txt").write_text(f'{(pooler / "users.txt").read_text()}"stats" "{SECRET}"\n')
        ini = (pooler / "pgbouncer.ini").read_text()
        (pooler / "pgbouncer.ini").write_text(re.sub("stats_users = .*", STATS, ini))
        execute(ends.sinks["pgbouncer"].address, "RELOAD")
        files = {**security.passwords, "secret": SECRET, "ca": str(security.ca), "ca.pem": security.ca.read_text()}
        ports = re.sub(r"<(\w+)>", lambda found: str(ours.settings.port(f"{found[1]}_port")), CLUSTERS)
        for name, text in {**files, "clusters.yaml": ports}.items():
            (folder / name).write_text(text)
        there = ExternalStack(folder / "clusters.yaml").endpoints.sinks["elasticsearch"]
        # It reads its files every 5 s.
        until(lambda: ready(there, True, 2.0) is None, 30)
        yield stack


def as_administrator(stack: LocalStack, commands: str) -> None:
    settings = java_settings(stack.endpoints.kafka_settings)
    (stack.home / "admin.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    program = f'"{find_java()}/bin/java" -cp "{stack.settings.dist}/kafka/libs/*" org.apache.kafka.tools.AclCommand'
    script = f'kafka-acls.sh() {{ {program} "$@"; }}\n{commands.replace("broker1:9092", stack.endpoints.kafka)}'
    succeeded(subprocess.run(["bash", "-ec", script], capture_output=True, text=True, check=False, cwd=stack.home))


def execute(address: str, text: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(text.encode())
