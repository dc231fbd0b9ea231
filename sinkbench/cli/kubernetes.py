"""The commands `sinkbench kubernetes apply`, `delete` and `show`: kubectl with the folder `kubernetes`."""

import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from sinkbench.cli.options import commands, say, write
from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT
from sinkbench.stack.certificates import write_file
from sinkbench.stack.operators import PART_OF, Object
from sinkbench.stack.tools import run
from sinkbench.suggest import did_you_mean

app = commands()
ABOUT = "Create, show and remove clusters in a Kubernetes namespace."
kubernetes = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help=ABOUT)
app.add_typer(kubernetes, name="kubernetes")

FOLDER, PLAIN = CHECKOUT / "kubernetes", "plain"
CREATED = "sinkbench.io/created"
# A label of all that `apply` makes, as some of it is in no namespace.
WITHIN = "sinkbench.io/namespace"
PARTS = ("--selector", f"{PART_OF}=sinkbench")
DELETE_WITHIN = "--timeout=300s"
# kubectl's messages of many lines.
UNKNOWN = re.compile(r'no matches for kind "(.+?)" in version "(.+?)"')
CONFLICT = re.compile(r"(conflicts? with .+?)\nPlease review", re.DOTALL)
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
    with TemporaryDirectory(prefix="sinkbench-kustomize-") as folder:
        _move(found, namespace, Path(folder))
        there = _there(folder, namespace)
        _move(found, namespace, Path(folder), [patch for each in there for patch in _kept(each)])
        if _namespace(namespace) == "":
            _kubectl("create", "namespace", namespace)
            # The operators' own pods may need more.
            mode = "enforce" if overlay == PLAIN else "warn"
            restricted = f"pod-security.kubernetes.io/{mode}=restricted"
            _kubectl("label", "namespace", namespace, f"{CREATED}=true", restricted)
        applied = _kubectl("apply", "--server-side", "--kustomize", folder, there=map(_name, there)).strip()
    say(applied)
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
def delete(namespace: Namespace = "sinkbench") -> None:
    """Delete what `apply` created of any overlay, and the namespace with all in it, unless that was there."""
    is_ours = CREATED in _namespace(namespace)
    marks = {"false": f"{WITHIN}={namespace}"} | ({} if is_ours else {"true": PARTS[1]})
    for namespaced, label in marks.items():
        kinds = _kubectl("api-resources", f"--namespaced={namespaced}", "--verbs=list,delete", "--output=name").split()
        # In the foreground: with what operators and controllers have made of them.
        whole = ("--ignore-not-found", "--cascade=foreground", DELETE_WITHIN)
        _kubectl("delete", ",".join(kinds), "--selector", label, "--namespace", namespace, *whole)
    if is_ours:
        _kubectl("delete", "namespace", namespace, DELETE_WITHIN)
    else:
        # Not all operators have their pods block that.
        _kubectl("wait", "pods", "--selector", "sinkbench", "--for=delete", "--namespace", namespace, DELETE_WITHIN)
    say(f"namespace {namespace}: nothing of sinkbench is left")


@kubernetes.command()
def show(
    namespace: Annotated[str, typer.Argument(help="default: the kubeconfig's")] = "",
    to: Annotated[Path | None, typer.Option(help="a new folder for stack.yaml and the secrets that it names")] = None,
) -> None:
    """Print a namespace's clusters as a stack file, or write it. Secrets are named, not shown."""
    # Imported here: the client takes long.
    from sinkbench.stack.kubernetes import KubernetesStack

    file = KubernetesStack(namespace).show()
    if to is None:
        write(file.read_text(encoding="utf-8") + "\n")
        return
    if to.exists():
        raise StackError(f"--to {to}: exists; name a folder that is not there yet")
    to.mkdir(mode=0o700, parents=True)
    for each in file.parent.iterdir():
        write_file(to / each.name, each.read_bytes())
    say(f"sinkbench race quick --stack {to / file.name}")


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


def _move(overlay: Path, namespace: str, folder: Path, patches: Sequence[Object] = ()) -> None:
    """Makes the folder the overlay, labelled and in the namespace, also where a role binding names that."""
    # Kustomize takes no absolute path. What belongs to no namespace is named by it.
    rename = {"op": "replace", "path": "/metadata/name", "value": f"sinkbench-nodes-{namespace}"}
    nodes = {"target": {"name": "sinkbench-nodes"}, "patch": json.dumps([rename]), "options": {"allowNameChange": True}}
    path, labels = os.path.relpath(overlay, folder.resolve()), {PART_OF: "sinkbench", WITHIN: namespace}
    text = {"namespace": namespace, "resources": [path], "labels": [{"pairs": labels}], "patches": [nodes, *patches]}
    (folder / "kustomization.yaml").write_text(json.dumps(text), encoding="utf-8")


def _there(folder: str, namespace: str) -> Sequence[Object]:
    """The folder's objects that are there already. Raises StackError if one of them is another's."""
    shown = ("--ignore-not-found", "--show-managed-fields", "--output=json", "--kustomize", folder)
    found = json.loads(_kubectl("get", *shown) or '{"items": []}')
    there: list[Object] = found.get("items", [found])
    labels = {_name(each): each["metadata"].get("labels", {}) for each in there}
    # `kubectl apply --kustomize` labels them without the namespace.
    ours = ("sinkbench", namespace)
    if others := [name for name, has in labels.items() if (has.get(PART_OF), has.get(WITHIN, namespace)) != ours]:
        said = "there already, and not of sinkbench; nothing was changed: name another --namespace"
        raise StackError(f"namespace {namespace}: {', '.join(others[:3])}: {said}")
    return there


def _name(there: Object) -> str:
    """As kubectl writes it: deployment.apps/loadgen."""
    group = there["apiVersion"].rpartition("/")[0]
    return f"{there['kind'].lower()}{group and '.'}{group}/{there['metadata']['name']}"


def _kept(there: Object) -> list[Object]:
    """A patch with what docs/kubernetes.md's `kubectl scale` and `patch` have set: the same value is no conflict."""
    managed = there["metadata"].get("managedFields", [])
    others = [each["fieldsV1"] for each in managed if each["operation"] == "Update"]
    kept = [key for key in ("replicas", "suspend") if any(f"f:{key}" in each.get("f:spec", {}) for each in others)]
    ops = [{"op": "add", "path": f"/spec/{key}", "value": there["spec"][key]} for key in kept]
    target = {"kind": there["kind"], "name": there["metadata"]["name"]}
    return [{"target": target, "patch": json.dumps(ops)}] if ops else []


def _folder(overlay: str) -> Path:
    there = {PLAIN: FOLDER / PLAIN, **{each.name: each for each in sorted((FOLDER / "overlays").glob("*"))}}
    found = there.get(overlay, Path(overlay))
    if not (found / "kustomization.yaml").exists():
        raise StackError(f"--overlay {overlay}: is no folder with a kustomization.yaml{did_you_mean(overlay, there)}")
    return found.resolve()


def _kubectl(*arguments: str, there: Iterable[str] = ()) -> str:
    """Returns its output. Raises StackError with one line: what conflicts in which of the objects that are `there`, the
    kinds without a CRD, or kubectl's last line, which names the right that an account lacks."""
    if shutil.which("kubectl") is None:
        raise StackError("there is no command kubectl; install it, or put it on the PATH (docs/kubernetes.md)")
    done = run(["kubectl", *arguments])
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["no message"])[-1]
        if unknown := dict.fromkeys(UNKNOWN.findall(done.stderr)):
            kinds = ", ".join(f"{kind} in version {version}" for kind, version in unknown)
            said = f"there is no CRD of {kinds}; install its operator, in a release that has it"
        elif conflicts := dict.fromkeys(CONFLICT.findall(done.stderr)):
            names = ", ".join(name for name in there if f"{name} serverside-applied" not in done.stdout)
            said = f"{names}: {' '.join('; '.join(conflicts).split())}; undo that, or write the same in the overlay"
        raise StackError(f"kubectl {arguments[0]}: {said}")
    return done.stdout
