"""kubernetes/ against the containers that it describes anew, without a cluster."""

import re

import pytest
from ruamel.yaml import YAML

from sinkbench.settings import CHECKOUT

yaml = YAML(typ="safe")
IMAGES = {
    "kafka-connect": "connect",
    "elasticsearch": "elasticsearch",
    "postgres-pgbouncer": "postgres",
    "sinkbench": "sinkbench",
}


@pytest.mark.parametrize("folder", ["base", "plain"])
def test_the_accounts_of_pods_are_those_of_their_images(folder: str) -> None:
    files = (CHECKOUT / "kubernetes" / folder).glob("*.yaml")
    kinds = ("StatefulSet", "Deployment", "Job")
    pods = [each["spec"]["template"]["spec"] for file in files for each in yaml.load_all(file) if each["kind"] in kinds]
    assert pods
    for pod in pods:
        image = pod["containers"][0]["image"].removeprefix("sinkbench/")
        dockerfile = (CHECKOUT / IMAGES[image] / "Dockerfile").read_text("utf-8")
        accounts = re.findall(r"useradd --system --uid (\d+)", dockerfile)
        assert str(pod["securityContext"]["runAsUser"]) in accounts


def properties(file: str, comment: str = "#") -> dict[str, str]:
    lines = (line.partition(comment)[0].partition("=") for line in (CHECKOUT / file).read_text("utf-8").splitlines())
    return {name.strip(): value.strip() for name, sign, value in lines if sign}


def test_the_operators_services_have_the_settings_of_the_containers() -> None:
    files = (CHECKOUT / "kubernetes/operators").glob("*.yaml")
    objects = {each["kind"]: each.get("spec", {}) for file in files for each in yaml.load_all(file)}
    pairs = [
        (objects["Kafka"]["kafka"]["config"], properties("kafka/server.properties")),
        (objects["KafkaConnect"]["config"], properties("connect/worker.properties")),
        (objects["Cluster"]["postgresql"]["parameters"], properties("postgres/postgresql.conf")),
        (objects["Pooler"]["pgbouncer"]["parameters"], properties("postgres/pgbouncer.ini", ";")),
        (objects["Elasticsearch"]["nodeSets"][0]["config"], yaml.load(CHECKOUT / "elasticsearch/elasticsearch.yml")),
    ]
    for here, there in pairs:
        # What ${...} stands for, the run scripts decide.
        fixed = {name: str(there[name]).lower() for name in here if "${" not in str(there[name])}
        assert {name: str(here[name]).lower() for name in fixed} == fixed
    variables = yaml.load(CHECKOUT / "docker-compose.yml")["services"]["connect"]["environment"]
    wanted = {name for name in variables if name.startswith(("ELASTICSEARCH_", "POSTGRES_", "PGBOUNCER_"))}
    assert wanted <= {each["name"] for each in objects["KafkaConnect"]["template"]["connectContainer"]["env"]}
