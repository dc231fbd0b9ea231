"""`sinkbench kubernetes apply` and `delete` in a namespace that was there, where a quota lets no pod run."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from sinkbench.cli.main import main
from sinkbench.errors import EXIT_UNUSABLE
from tests.kubernetes.cluster import ROOT, done, kubectl

NAME = "sinkbench-apply"
WHERE, ROLE, USER = ("--namespace", NAME), f"clusterrole/sinkbench-nodes-{NAME}", f"user-of-{NAME}"
THEIRS = ("service/kafka", "serviceaccount/controller", "configmap/mine", ROLE)
KINDS = "sa,pvc,svc,sts,deploy,netpol,cm,clusterrole,elasticsearch,kafka.kafka.strimzi.io,cluster.postgresql.cnpg.io"
# The resources that sinkbench.stack lists, then the rest of what it does.
LISTED = """pods services kafkas.kafka.strimzi.io kafkaconnects.kafka.strimzi.io kafkausers.kafka.strimzi.io
elasticsearches.elasticsearch.k8s.elastic.co clusters.postgresql.cnpg.io poolers.postgresql.cnpg.io"""
DONE = "get secrets,delete pods,get pods --subresource=log,create pods --subresource=exec,get nodes --subresource=proxy"
CHANGED = [f"{verb} kafkaconnectors.kafka.strimzi.io" for verb in ("get", "list", "create", "patch", "delete")]
RIGHTS = [*(f"list {each}" for each in LISTED.split()), *DONE.split(","), *CHANGED]


@pytest.fixture
def theirs(operators: None) -> Iterator[None]:
    try:
        done("create", "namespace", NAME)
        done("create", "quota", "no-pods", "--hard=pods=0", *WHERE)
        yield
    finally:
        main(["kubernetes", "delete", *WHERE])
        kubectl("delete", "namespace", NAME)


def apply(overlay: object = "plain") -> int:
    return main(["kubernetes", "apply", "--overlay", str(overlay), *WHERE, "--wait", "0"])


def there() -> set[str]:
    found = done("get", KINDS, *WHERE, "--output=name").split()
    return {each for each in found if "clusterrole" not in each or NAME in each}


def test_objects_of_others_are_refused_before_anything_changes_and_outlive_delete_of_any_overlay(
    theirs: None, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        for each, more in zip(THEIRS, (["--tcp=80"], [], [], ["--verb=get", "--resource=pods"]), strict=True):
            kind, _, name = each.partition("/")
            done("create", kind, *["clusterip"] * (kind == "service"), name, *more, *WHERE)
        before = there()
        assert apply() == EXIT_UNUSABLE
        named = f": serviceaccount/controller, {ROLE.replace('/', '.rbac.authorization.k8s.io/')}, service/kafka: "
        assert f"{named}there already, and not of sinkbench" in capsys.readouterr().err
        assert there() == before
        done("delete", "serviceaccount/controller", ROLE, *WHERE)
        left = there()
        assert apply("small") == 0
        assert "kafka.kafka.strimzi.io/bench" in there()
        assert main(["kubernetes", "delete", *WHERE]) == 0
        assert there() == left
    finally:
        kubectl("delete", ROLE)


def test_apply_keeps_what_the_documented_commands_change_and_tells_what_it_cannot_apply(
    theirs: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert apply() == 0
    page = (ROOT / "docs/kubernetes.md").read_text("utf-8").replace(" -n sinkbench", "")
    for each in re.findall(r"kubectl ((?:scale|patch) \w+ (?:connect|loadgen|controller) [^`#\n]*)", page):
        done(*shlex.split(each), *WHERE)
    assert apply() == 0
    found = done("get", "statefulset/connect", "deployment/loadgen", "job/controller", *WHERE, "--output=json")
    specs = [each["spec"] for each in json.loads(found)["items"]]
    assert (specs[0]["replicas"], specs[1]["replicas"], specs[2]["suspend"]) == (6, 2, False)
    done("set", "image", "statefulset/kafka", "kafka=none", *WHERE)
    assert apply() == EXIT_UNUSABLE
    said = r': statefulset.apps/kafka: conflict with "kubectl-set" using apps/v1: \.spec\S+\.image; undo that, .*\n$'
    assert re.search(said, capsys.readouterr().err)
    (tmp_path / "none.yaml").write_text("{apiVersion: sinkbench.invalid/v9, kind: Late, metadata: {name: late}}")
    (tmp_path / "kustomization.yaml").write_text("resources: [none.yaml]")
    assert apply(tmp_path) == EXIT_UNUSABLE
    assert "no CRD of Late in version sinkbench.invalid/v9; install its operator" in capsys.readouterr().err


def test_the_rights_for_a_user_are_accepted_and_suffice(theirs: None) -> None:
    text = (ROOT / "kubernetes/rights/roles.yaml").read_text("utf-8")
    asked = ("auth", "can-i", "--as", USER, *WHERE)
    try:
        for each in re.findall("#   kubectl (.+)", text):
            done(*each.replace("NAMESPACE", NAME).replace("USER", USER).split())
        assert [each for each in RIGHTS if kubectl(*asked, *each.split()).returncode] == []
        assert kubectl(*asked, "create", "pods").returncode
    finally:
        kubectl("delete", "clusterrole/sinkbench-nodes", f"clusterrolebinding/sinkbench-{USER}")
