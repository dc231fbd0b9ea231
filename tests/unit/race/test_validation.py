"""What is made of Connect's validation of a plan's configurations, before a race creates anything."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sinkbench.errors import ConnectError, PlanError
from sinkbench.plan.cells import Cell, expand
from sinkbench.race.preparation import unread, validate_configs
from sinkbench.services.connect import Validation
from sinkbench.trial.names import Names
from tests.support.trials import plan_in

SAID = Validation(frozenset({"name", "connector.class", "topics", "tasks.max", "batch.size"}), {}, {})


def validated(
    folder: Path, text: str, said: Validation | ConnectError = SAID, refuses: str | None = None
) -> tuple[int, list[str]]:
    """How often Connect, which answers so, was asked for a plan of this text, and the lines that were said of it.

    It cannot read a configuration with the key that it `refuses`."""
    plan, asked, lines = plan_in(folder, text), [], []

    def validate(config: dict[str, str]) -> Validation:
        asked.append(config)
        if isinstance(said, ConnectError):
            raise said
        if refuses in config:
            raise ConnectError("HTTP 500: Invalid value many")
        return said

    def config(cell: Cell, names: Names) -> dict[str, str]:
        return {"connector.class": "a.Jdbc", "topics": names.topic, "tasks.max": str(cell.tasks), **cell.overrides}

    connect, stack = SimpleNamespace(validate=validate), SimpleNamespace(layout=object())
    cluster: Any = SimpleNamespace(plan=plan, connect=connect, stack=stack, config=config)
    validate_configs(cluster, expand(plan, 3), lines.append)
    return len(asked), lines


def refusal(folder: Path, text: str, said: Validation = SAID, refuses: str | None = None) -> str:
    with pytest.raises(PlanError) as refused:
        validated(folder, text, said, refuses)
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
    assert validated(tmp_path, PLAIN) == (1, [])
    said = refusal(tmp_path, OVERRIDDEN.replace("KEY", "batch.sise"))
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
    assert refusal(tmp_path, PLAIN, wrong).replace(f"{tmp_path}/", "").splitlines() == [
        "mine.yaml:1: postgres/jdbc: Connect refuses 'batch.size': Invalid value x: Not a number",
        "connectors/postgres/jdbc.json:5: postgres/jdbc: Connect refuses 'topics': no",
    ]
    # The keys of a class that is refused are not called unread.
    wrong = replace(SAID, errors={"transforms.a.type": ("no such class",), **{f"key{n}": ("no",) for n in range(6)}})
    said = refusal(tmp_path, OVERRIDDEN.replace("KEY", "transforms.a.field"), wrong)
    assert ("transforms.a.field" in said, "\nand " in said, said.count("\n")) == (False, True, 5)


def test_a_variable_that_the_workers_do_not_know_is_named(tmp_path: Path) -> None:
    unknown = replace(SAID, values={"tasks.max": "x:${env:DB_PORT}", "absent": "${env:B}"})
    said = "'tasks.max' needs the variable DB_PORT, which the workers do not know"
    assert said in refusal(tmp_path, PLAIN, unknown)


def test_a_connect_that_does_not_validate_stops_no_race_and_is_named_once(tmp_path: Path) -> None:
    said = "the keys of connectors are not checked: Connect does not validate postgres/jdbc: HTTP 403: no"
    found = validated(tmp_path, OVERRIDDEN.replace("KEY", "batch.sise"), ConnectError("HTTP 403: no"))
    assert found == (2, [said])


def test_a_configuration_that_connect_cannot_read_is_refused_where_it_reads_others(tmp_path: Path) -> None:
    key = "consumer.override.max.poll.records"
    said = refusal(tmp_path, OVERRIDDEN.replace("KEY", key), refuses=key)
    assert "mine.yaml:6: big: Connect cannot read the configuration: HTTP 500: Invalid" in said
