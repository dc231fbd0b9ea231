"""What ECK and CloudNativePG make of the overlay `small`, up to pods: their images are not at hand everywhere."""

import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from sinkbench.stack.certificates import issue, make_authority
from sinkbench.stack.kubernetes import Api
from tests.kubernetes.cluster import CNPG, ECK, done, kubectl, source_of
from tests.kubernetes.test_manifests import SIZED, changed, rendered
from tests.support.waiting import until

NAME = "sinkbench-operators"
MADE = {
    "Elasticsearch/bench": ("elasticsearch.k8s.elastic.co/cluster-name", "bench-es-http", "bench-es-elastic-user"),
    "Cluster/bench": ("cnpg.io/jobRole", "bench-rw", "bench-app"),
    "Pooler/bench-pooler": ("cnpg.io/poolerName", "bench-pooler", "bench-pooler"),
}
ECK_FLAGS = f"--namespaces={NAME} --operator-namespace={NAME} --enable-webhook=false --metrics-port=0"


@pytest.fixture(scope="module")
def acting(operators: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder, running = tmp_path_factory.mktemp("operators"), []
    signed = issue(make_authority(datetime.now(UTC)), ["127.0.0.1"], datetime.now(UTC))
    (folder / "apiserver.crt").write_bytes(signed.certificate)
    (folder / "apiserver.key").write_bytes(signed.key)
    names = {"OPERATOR_NAMESPACE": NAME, "WATCH_NAMESPACE": NAME, "WEBHOOK_CERT_DIR": str(folder), "CGO_ENABLED": "0"}
    # CloudNativePG looks for itself under that name.
    cnpg = (CNPG, "./cmd/manager", "operator/manager_amd64", "controller --metrics-bind-address=0 --webhook-port=19443")
    try:
        done("create", "namespace", NAME)
        done("label", "namespace", NAME, "pod-security.kubernetes.io/enforce=restricted")
        for module, main, name, arguments in ((ECK, "./cmd", "eck", f"manager {ECK_FLAGS}"), cnpg):
            made, env = folder / name, os.environ | names
            subprocess.run(["go", "build", "-trimpath", "-o", made, main], cwd=source_of(module), env=env, check=True)
            running.append(subprocess.Popen([made, *arguments.split()], cwd=folder, env=env))
        for asked in MADE:
            done("apply", "-f-", given=changed(rendered("small")[asked], "/metadata/namespace", NAME))
        yield
    finally:
        for each in running:
            each.terminate()
            each.wait(60)
        kubectl("delete", "namespace", NAME, "--ignore-not-found")


@pytest.mark.parametrize("asked", MADE)
def test_an_operator_makes_restricted_pods_of_our_size_a_service_and_a_secret(acting: None, asked: str) -> None:
    (label, service, secret), api = MADE[asked], Api(NAME)
    pods = until(lambda: [each for each in api.list("pods") if label in each["metadata"]["labels"]], 180)
    wanted = SIZED[asked.partition("/")[0]](rendered("small")[asked]["spec"])["resources"]
    assert pods[0]["spec"]["containers"][0]["resources"] == wanted
    assert all(api.list(each) for each in (f"services/{service}", f"secrets/{secret}"))
