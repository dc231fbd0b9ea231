"""The commands `sinkbench kubernetes apply`, `delete` and `show`: kubectl with the folder `kubernetes`."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from sinkbench.cli.options import commands, say, write
from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT
from sinkbench.stack.tools import run
from sinkbench.suggest import did_you_mean

app = commands()
ABOUT = "Create, show and remove clusters in a Kubernetes namespace."
kubernetes = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help=ABOUT)
app.add_typer(kubernetes, name="kubernetes")

FOLDER, PLAIN = CHECKOUT / "kubernetes", "plain"
OURS = "sinkbench.io/created"
DELETE_SECONDS = 300
PARTS = ("--selector", "app.kubernetes.io/part-of=sinkbench")
# Kubernetes tries again, and pods stay without their image.
UNPULLED = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName")
WAITING = ".status.containerStatuses[*]}{.image}: {.state.waiting.reason}: {.state.waiting.message}"
UNREADY = '}{.metadata.name}: {.status.conditions[?(@.status=="False")].message}'
# What an operator's resource says when it is ready.
OPERATED = ("kafka.kafka.strimzi.io", "kafkaconnect.kafka.strimzi.io", "cluster.postgresql.cnpg.io")
READY = dict.fromkeys(OPERATED, "condition=Ready")
READY["elasticsearch.elasticsearch.k8s.elastic.co"] = "jsonpath={.status.phase}=Ready"
# Strimzi and ECK say why in a condition, CloudNativePG in its phase.
SAID = "jsonpath={.status.phase} {.status.phaseReason} {.status.conditions[*].message}"
Overlay = Annotated[str, typer.Option(help="plain, small, published, large, or a folder of yours")]
Namespace = Annotated[str, typer.Option(help="namespace for all of it")]


@kubernetes.command()
def apply(
    overlay: Overlay = PLAIN,
    namespace: Namespace = "sinkbench",
    wait: Annotated[int, typer.Option(min=0, help="seconds until all pods must be ready; 0: do not wait")] = 300,
) -> None:
    """Apply an overlay, and wait for its pods. A second call changes nothing; it takes nothing over from others."""
    found = _folder(overlay)
    if _namespace(namespace) == "":
        _kubectl("create", "namespace", namespace)
        # The operators' own pods may need more.
        mode = "enforce" if overlay == PLAIN else "warn"
        _kubectl("label", "namespace", namespace, f"{OURS}=true", f"pod-security.kubernetes.io/{mode}=restricted")
    with _in_namespace(found, namespace) as folder:
        say(applied := _kubectl("apply", "--server-side", "--kustomize", folder).strip())
    if wait:
        say("waiting for the pods")
        _await_pods(namespace, wait)
        within = ("--namespace", namespace, f"--timeout={wait}s")
        for line in applied.splitlines():
            if sign := READY.get(line.partition("/")[0]):
                try:
                    _kubectl("wait", name := line.split()[0], f"--for={sign}", *within)
                except StackError as late:
                    said = " ".join(_kubectl("get", name, "--namespace", namespace, "--output", SAID).split())
                    raise StackError(f"{late}: {said or 'no operator has acted upon it'}") from None
    say(f"sinkbench race quick --stack kubernetes:{namespace}")


@kubernetes.command()
def delete(overlay: Overlay = PLAIN, namespace: Namespace = "sinkbench") -> None:
    """Delete what `apply` created: the overlay's parts, and the namespace with all in it, unless that was there."""
    is_ours = OURS in _namespace(namespace)
    # A claim stays for as long as a pod uses it, which the namespace takes along.
    wait = "--wait=false" if is_ours else f"--timeout={DELETE_SECONDS}s"
    with _in_namespace(_folder(overlay), namespace) as folder:
        _kubectl("delete", "--ignore-not-found", wait, "--kustomize", folder)
    if is_ours:
        _kubectl("delete", "namespace", namespace, f"--timeout={DELETE_SECONDS}s")
    say(f"namespace {namespace}: nothing of sinkbench is left")


@kubernetes.command()
def show(namespace: Annotated[str, typer.Argument(help="default: the kubeconfig's")] = "") -> None:
    """Print a namespace's clusters as a stack file. Secrets are named, not shown."""
    # Imported here: the client takes long.
    from sinkbench.stack.kubernetes import KubernetesStack

    write(KubernetesStack(namespace).show() + "\n")


def _await_pods(namespace: str, seconds: float) -> None:
    """Raises StackError as soon as an image cannot be pulled, or in the end, with what Kubernetes says."""
    until = time.monotonic() + seconds

    def lines(of_each: str) -> list[str]:
        text = "jsonpath={range .items[*]" + of_each + r'{"\n"}{end}'
        return _kubectl("get", "pods", "--namespace", namespace, *PARTS, "--output", text).splitlines()

    while True:
        most = f"--timeout={min(5.0, until - time.monotonic()):.1f}s"
        try:
            _kubectl("rollout", "status", "statefulset,deployment", *PARTS, "--namespace", namespace, most)
        except StackError as late:
            if images := [line for line in lines(WAITING) if any(each in line for each in UNPULLED)]:
                raise StackError(f"image {images[0]}; push it, or set `images` in the kustomization.yaml") from None
            if time.monotonic() > until - 1:
                unready = [line for line in lines(UNREADY) if not line.endswith(": ")]
                raise StackError("; ".join([str(late), *unready])) from None
        else:
            return


def _namespace(name: str) -> str:
    """Its labels; "" if there is none of that name."""
    return _kubectl("get", "namespace", name, "--ignore-not-found", "--output", "jsonpath={.metadata.labels}")


@contextmanager
def _in_namespace(overlay: Path, namespace: str) -> Iterator[str]:
    """A folder with the overlay moved to the namespace, also where a role binding names it."""
    with TemporaryDirectory(prefix="sinkbench-kustomize-") as made:
        # Kustomize takes no absolute path. What belongs to no namespace is named by it.
        op = {"op": "replace", "path": "/metadata/name", "value": f"sinkbench-nodes-{namespace}"}
        patch = {"target": {"name": "sinkbench-nodes"}, "patch": json.dumps([op]), "options": {"allowNameChange": True}}
        path = os.path.relpath(overlay, Path(made).resolve())
        text = {"namespace": namespace, "resources": [path], "patches": [patch]}
        Path(made, "kustomization.yaml").write_text(json.dumps(text), encoding="utf-8")
        yield made


def _folder(overlay: str) -> Path:
    there = {PLAIN: FOLDER / PLAIN, **{each.name: each for each in sorted((FOLDER / "overlays").glob("*"))}}
    found = there.get(overlay, Path(overlay))
    if not (found / "kustomization.yaml").exists():
        raise StackError(f"--overlay {overlay}: is no folder with a kustomization.yaml{did_you_mean(overlay, there)}")
    return found.resolve()


def _kubectl(*arguments: str) -> str:
    """Returns its output. Raises StackError with its last line, which names the right that an account lacks."""
    if shutil.which("kubectl") is None:
        raise StackError("there is no command kubectl; install it, or put it on the PATH (docs/kubernetes.md)")
    done = run(["kubectl", *arguments])
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise StackError(f"kubectl {arguments[0]}: {lines[-1]}")
    return done.stdout
