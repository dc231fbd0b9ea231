"""The reference of commands and plan keys, and the example of settings: complete, and as the code is now."""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from scripts.reference import env_example, keys_of, plan_keys, reference
from sinkbench.cli.main import COMMANDS
from sinkbench.plan.plan import Plan
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


def test_the_page_and_the_example_of_settings_are_those_of_the_code() -> None:
    for file, made in (("docs/reference.md", reference()), (".env.example", env_example())):
        assert (CHECKOUT / file).read_text(encoding="utf-8") == made, f"{file} is stale; run scripts/reference"


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
    sections["load"] = {"changes": {"inserts": 1, "updates": 0}}
    plan = Plan.model_validate({"name": "p", "pipelines": ["a/b"], **sections})
    load = {"records_per_second": 1, "seconds": 20}
    del sections["load"]
    broken = {**sections, "mode": "faults", "sustain": load, "faults": [{"what": "none"}]}
    faults = Plan.model_validate({"name": "p", "pipelines": ["a/b"], **broken})

    def dotted(content: object, above: str) -> set[str]:
        found = set()
        for key, value in content.items() if isinstance(content, dict) else ():
            inner, mark = (value[0], "[]") if isinstance(value, list) and value else (value, "")
            found |= {f"{above}{key}", *dotted(inner, f"{above}{key}{mark}.")}
        return found

    keys = {key.name: key for key in plan_keys()}
    assert len(keys) == len(plan_keys())
    assert {name for name, key in keys.items() if "drain" in key.modes} - {"thresholds"} == dotted(plan.whole(), "")
    assert {name for name, key in keys.items() if "faults" in key.modes} - {"thresholds"} == dotted(faults.whole(), "")
    assert keys["sustain.seconds"].modes == ["sustain", "capacity", "faults"]
    assert [key.name for key in keys.values() if not key.row[-1]] == []
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_a_key_names_its_modes_where_its_section_has_others() -> None:
    text = reference()
    assert "- `sustain` (mapping): Modes sustain, capacity, faults: " in text
    assert "- `sustain.seconds` (number above 0 to 86400, default 30): how long" in text
    assert re.search(r"- `sustain\.backlog_records` \([^)]+, default null\): Mode faults: ", text)


def test_every_command_is_there_with_the_first_sentence_of_its_help() -> None:
    text = reference()
    for name in COMMANDS:
        assert f"\n- `sinkbench {name}" in text
    down = "- `sinkbench down`: Stop the stack; its data stays."
    for part in (down, "- `loadgen serve`: ", "; 130 interrupted"):
        assert part in text
    # Names in angle brackets would be HTML but for code.
    assert re.findall(r"(?<![\\`\w ])<\w+>", re.sub(r"`[^`]*`", "", text)) == []
    assert str(CHECKOUT) not in text
