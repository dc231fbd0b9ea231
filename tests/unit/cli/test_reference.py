"""What is generated, such as the reference of commands and plan keys: complete, and as the code is now."""

import json
import re
from collections.abc import Callable
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from scripts.licenses import bill_of_materials, fetched, page
from scripts.reference import env_example, keys_of, plan_keys, reference
from scripts.schema import format_schema
from sinkbench.plan.plan import Plan
from sinkbench.results import RunSummary, TrialRecord
from sinkbench.settings import CHECKOUT, Settings


class Inner(BaseModel):
    share: float = Field(gt=0, le=1, description="a share")


class Outer(BaseModel):
    """A model with what the plan's models have, one of each."""

    name: str = Field(max_length=9, description="its name (default: the file's)")
    mode: Literal["a", "b"] = Field(default="a", description="how")
    counts: list[Annotated[int, Field(gt=0, le=9)]] | None = Field(default=None, min_length=1, description="how many")
    inner: Inner = Field(default=Inner(share=1), description="the inner one")
    many: list[Inner] = Field(min_length=1, description="several")
    texts: dict[str, str] = Field(default_factory=dict, description="by name")
    on: bool = Field(default=True, description="whether")


@pytest.mark.parametrize(
    ("file", "make", "script"),
    [
        ("docs/reference.md", reference, "reference"),
        (".env.example", env_example, "reference"),
        ("docs/format.schema.json", format_schema, "schema"),
        ("licenses.md", lambda: page(fetched()), "licenses"),
    ],
)
def test_a_generated_file_is_that_of_the_code(file: str, make: Callable[[], str], script: str) -> None:
    assert (CHECKOUT / file).read_text("utf-8") == make(), f"{file} is stale; run scripts/{script}"


def test_the_schema_knows_every_field_and_lets_defaults_be_missing() -> None:
    models = json.loads(format_schema())["$defs"]
    assert models["TrialRecord"]["properties"].keys() == {*TrialRecord.model_fields, "invalid"}
    assert models["RunSummary"]["required"] == ["run", "complete", "plan", "cells"]
    assert models["RunSummary"]["properties"].keys() == RunSummary.model_fields.keys()


def test_a_key_is_told_with_its_type_default_and_what_is_allowed() -> None:
    assert [(key.name, *key.row) for key in keys_of(Outer)] == [
        ("name", "text", "the file's", "its name"),
        ("mode", "a, b", "a", "how"),
        ("counts", "list of whole numbers from 1 to 9", "null", "how many"),
        ("inner", "mapping", "", "the inner one"),
        ("inner.share", "number above 0 to 1", "required", "a share"),
        ("many", "list of mappings", "required", "several"),
        ("many[].share", "number above 0 to 1", "required", "a share"),
        ("texts", "mapping to text", "{}", "by name"),
        ("on", "true or false", "true", "whether"),
    ]


def test_every_key_and_every_setting_is_there_and_described() -> None:
    sections = {"until": {"interval_percent": 5, "trials": 9}, "prices": {"currency": "EUR", "core_hour": 1}}
    bare = {"name": "p", "pipelines": ["a/b"], **sections}
    drain = {"load": {"changes": {"inserts": 1, "updates": 0}}, "kafka": [{"label": "a"}]}
    load = {"records_per_second": 1, "seconds": 20}
    faults = {"mode": "faults", "sustain": load, "faults": [{"what": "none"}]}

    def dotted(content: object, above: str) -> set[str]:
        found = set()
        for key, value in content.items() if isinstance(content, dict) else ():
            inner, mark = (value[0], "[]") if isinstance(value, list) and value else (value, "")
            found |= {f"{above}{key}", *dotted(inner, f"{above}{key}{mark}.")}
        return found

    keys = {key.name: key for key in plan_keys()}
    assert len(keys) == len(plan_keys())
    for mode, own in (("drain", drain), ("faults", faults)):
        whole = Plan.model_validate({**bare, **own}).whole()
        assert {name for name, key in keys.items() if mode in key.modes} - {"thresholds"} == dotted(whole, "")
    assert keys["sustain.seconds"].modes == ["sustain", "capacity", "faults"]
    assert [key.name for key in keys.values() if not key.row[-1]] == []
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_the_page_has_the_exit_codes_and_nothing_that_is_html_or_of_this_machine() -> None:
    text = reference()
    assert "; 130 interrupted" in text
    # Names in angle brackets would be HTML but for code.
    assert re.findall(r"(?<![\\`\w ])<\w+>", re.sub(r"`[^`]*`", "", text)) == []
    assert str(CHECKOUT) not in text


def test_the_bill_of_materials_names_every_version_and_nothing_twice() -> None:
    found = fetched()
    purls = [each["purl"] for each in json.loads(bill_of_materials(found))["components"]]
    assert len(purls) == len(set(purls)) == len(found)
    assert {"pkg:deb/debian/pgbouncer", "pkg:deb/debian/maven"} <= set(purls)
    assert any(each.startswith("pkg:maven/org.postgresql/postgresql@") for each in purls)
    assert [each for each in purls if not each.startswith("pkg:deb/") and "@" not in each] == []
