"""The operators' resource definitions in the cluster that KUBECONFIG names, for as long as the tests take."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.kubernetes.cluster import CNPG, ECK, PROMETHEUS, ROOT, done, kubectl, source_of

CRDS = os.environ.get("KUBERNETES_CRDS")


def definitions(folder: Path) -> list[dict[str, Any]]:
    """The namespace, the folder's definitions, and those in the operators' Go modules, which win."""
    files = [ROOT / "kubernetes/namespace.yaml", *folder.glob("*.yaml")]
    patterns = {
        ECK: "config/crds/v1/all-crds.yaml",
        CNPG: "config/crd/bases/*.yaml",
        PROMETHEUS: "example/prometheus-operator-crd/*_podmonitors.yaml",
    }
    for module, pattern in patterns.items():
        files += source_of(module).glob(pattern)
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
