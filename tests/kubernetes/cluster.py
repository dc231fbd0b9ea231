"""Commands to the cluster that KUBECONFIG names."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
ECK, CNPG = "github.com/elastic/cloud-on-k8s/v3@v3.5.0", "github.com/cloudnative-pg/cloudnative-pg@v1.30.0"
PROMETHEUS = "github.com/prometheus-operator/prometheus-operator@v0.85.0"


def source_of(module: str) -> Path:
    command = ["go", "mod", "download", "-json", module]
    return Path(json.loads(subprocess.run(command, capture_output=True, check=True, cwd="/").stdout)["Dir"])


def kubectl(*arguments: str, given: object = None) -> subprocess.CompletedProcess[str]:
    """Runs kubectl; `given` is its input, as JSON."""
    text = None if given is None else json.dumps(given)
    return subprocess.run(["kubectl", *arguments], input=text, capture_output=True, text=True, timeout=400, check=False)


def done(*arguments: str, given: object = None) -> str:
    """The output of a command that must succeed."""
    answer = kubectl(*arguments, given=given)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout
