"""What is made of Connect's validation of a plan's configurations, before a race creates anything."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sinkbench.errors import ConnectError, PlanError
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.race.preparation import unread, validate_configs
from sinkbench.services.connect import Validation
from sinkbench.trial.cluster import Cluster
from tests.support.trials import plan_in

SAID = Validation(frozenset({"name", "connector.class", "topics", "tasks.max", "batch.size"}), {}, {})


class Asked:
    """A cluster whose Connect answers each configuration with what it is told."""

    def __init__(self, plan: Plan, said: Validation | ConnectError) -> None:
        self.plan = plan
        self.said = said
        self.connect = SimpleNamespace(validate=self._validate)
        self.stack = SimpleNamespace(layout=object())
        self.validated: list[str] = []
        self.lines: list[str] = []
        # With this key a configuration cannot be read.
        self.refuses: str | None = None

    def config(self, cell: Any, names: Any) -> dict[str, str]:
        return {"connector.class": "a.Jdbc", "topics": names.topic, "tasks.max": str(cell.tasks), **cell.overrides}

    def _validate(self, config: dict[str, str]) -> Validation:
        self.validated.append(config.get("tasks.max", ""))
        if isinstance(self.said, ConnectError) or (self.refuses is not None and self.refuses in config):
            raise self.said if isinstance(self.said, ConnectError) else ConnectError("HTTP 500: Invalid value many")
        return self.said

    def run(self) -> None:
        validate_configs(cast(Cluster, self), expand(self.plan, 3), self.lines.append)


def asked(folder: Path, text: str, said: Validation | ConnectError = SAID) -> Asked:
    return Asked(plan_in(folder, text), said)


def refusal(cluster: Asked) -> str:
    with pytest.raises(PlanError) as refused:
        cluster.run()
    return str(refused.value)


PLAIN = "pipelines: [postgres/jdbc]\nmultiples: [1, 2, 4]\n"
OVERRIDDEN = """pipelines:
  - postgres/jdbc
  - pipeline: postgres/jdbc
    label: big
    overrides:
      batch.size: 10
      KEY: x
"""


def test_each_pipeline_is_validated_once_and_an_unknown_override_refused_with_its_line(tmp_path: Path) -> None:
    cluster = asked(tmp_path, PLAIN)
    cluster.run()
    assert (len(cluster.validated), cluster.lines) == (1, [])
    said = refusal(asked(tmp_path, OVERRIDDEN.replace("KEY", "batch.sise")))
    assert re.search(r"mine\.yaml:7: big: the key 'batch\.sise' .* mean 'batch\.size'\?$", said)


@pytest.mark.parametrize(
    ("key", "is_unread"),
    [
        ("batch.sise", True),
        ("consumer.override.max.pol.records", True),
        ("camel.sink.endpoint.operation", True),
        ("consumer.override.max.poll.records", False),
        *((f"{prefix}.x", False) for prefix in ("hibernate", "camel.main", "producer.override", "value.converter")),
    ],
)
def test_an_override_is_listed_or_handed_on(key: str, is_unread: bool) -> None:
    assert unread([key, "batch.size"], SAID.listed) == [key] * is_unread
    assert unread([key], {*SAID.listed, key}) == []
    assert unread(["camel.sink.path.a"], SAID.listed, parts=True) == []


def test_connects_own_errors_are_shown_with_their_key(tmp_path: Path) -> None:
    wrong = replace(SAID, errors={"batch.size": ("Invalid value x: Not a number",), "topics": ("no",)})
    assert refusal(asked(tmp_path, PLAIN, wrong)).replace(f"{tmp_path}/", "").splitlines() == [
        "mine.yaml:1: postgres/jdbc: Connect refuses 'batch.size': Invalid value x: Not a number",
        "connectors/postgres/jdbc.json:5: postgres/jdbc: Connect refuses 'topics': no",
    ]
    # The keys of a class that is refused are not called unread.
    wrong = replace(SAID, errors={"transforms.a.type": ("no such class",), **{f"key{n}": ("no",) for n in range(6)}})
    said = refusal(asked(tmp_path, OVERRIDDEN.replace("KEY", "transforms.a.field"), wrong))
    assert ("transforms.a.field" in said, "\nand " in said, said.count("\n")) == (False, True, 5)


def test_a_variable_that_the_workers_do_not_know_is_named(tmp_path: Path) -> None:
    unknown = replace(SAID, values={"tasks.max": "x:${env:DB_PORT}", "absent": "${env:B}"})
    said = "'tasks.max' needs the variable DB_PORT, which the workers do not know"
    assert said in refusal(asked(tmp_path, PLAIN, unknown))


def test_a_connect_that_does_not_validate_stops_no_race_and_is_named_once(tmp_path: Path) -> None:
    cluster = asked(tmp_path, OVERRIDDEN.replace("KEY", "batch.sise"), ConnectError("HTTP 403: no"))
    cluster.run()
    said = "the keys of connectors are not checked: Connect does not validate postgres/jdbc: HTTP 403: no"
    assert (len(cluster.validated), cluster.lines) == (2, [said])


def test_a_configuration_that_connect_cannot_read_is_refused_where_it_reads_others(tmp_path: Path) -> None:
    cluster = asked(tmp_path, OVERRIDDEN.replace("KEY", "consumer.override.max.poll.records"))
    cluster.refuses = "consumer.override.max.poll.records"
    assert "mine.yaml:6: big: Connect cannot read the configuration: HTTP 500: Invalid" in refusal(cluster)
