"""Commands to the cluster that KUBECONFIG names."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def kubectl(*arguments: str, given: object = None) -> subprocess.CompletedProcess[str]:
    """Runs kubectl, the one that scripts/kubernetes-bootstrap built if there is one; `given` is its input, as JSON."""
    built = Path(os.environ.get("KUBERNETES_FOLDER", ROOT / "var/kubernetes")) / "kubectl"
    program = str(built) if built.exists() else "kubectl"
    text = None if given is None else json.dumps(given)
    return subprocess.run([program, *arguments], input=text, capture_output=True, text=True, timeout=120, check=False)


def done(*arguments: str, given: object = None) -> str:
    """The output of a command that must succeed."""
    answer = kubectl(*arguments, given=given)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout
