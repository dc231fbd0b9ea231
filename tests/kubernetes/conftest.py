"""The operators' resource definitions in the cluster that KUBECONFIG names, for as long as the tests take."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.kubernetes.cluster import ROOT, done, kubectl

CRDS = os.environ.get("KUBERNETES_CRDS")
ECK = "github.com/elastic/cloud-on-k8s/v3@v3.5.0"


def definitions(folder: Path) -> list[dict[str, Any]]:
    """The namespace, the folder's definitions (of Strimzi and CloudNativePG), and those in ECK's Go module."""
    command = ["go", "mod", "download", "-json", ECK]
    module = json.loads(subprocess.run(command, capture_output=True, check=True, cwd=folder).stdout)
    eck = Path(module["Dir"]) / "config/crds/v1/all-crds.yaml"
    files = [ROOT / "kubernetes/namespace.yaml", eck, *folder.glob("*.yaml")]
    return [each for file in files for each in YAML(typ="safe").load_all(file) if each]


@pytest.fixture(scope="session")
def operators() -> Iterator[None]:
    """Adds the namespace and the definitions that the cluster lacks, and in the end removes only these."""
    if not os.environ.get("KUBECONFIG"):
        pytest.skip("KUBECONFIG names no cluster; scripts/kubernetes-bootstrap starts one")
    if CRDS is None or not shutil.which("go"):
        pytest.skip("KUBERNETES_CRDS names no folder of resource definitions, or there is no Go to fetch ECK's")
    there = done("get", "crds,namespaces", "--output=jsonpath={.items[*].metadata.name}").split()
    missing = [each for each in definitions(Path(CRDS)) if each["metadata"]["name"] not in there]
    given = {"apiVersion": "v1", "kind": "List", "items": missing}
    try:
        if missing:
            done("apply", "--server-side", "--filename=-", given=given)
        done("wait", "--for=condition=Established", "--timeout=60s", "crds", "--all")
        yield
    finally:
        kubectl("delete", "--ignore-not-found", "--filename=-", given=given)
