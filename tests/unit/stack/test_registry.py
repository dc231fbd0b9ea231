"""Sinks as entry points: another package brings one, and a mistake in it is one line."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sinkbench.errors import StackError
from sinkbench.sinks import Sink, open_sink, sink_kind, sinks_of, stamping_sinks
from sinkbench.stack import Endpoint, Endpoints, registry
from sinkbench.stack.assembly import checks
from sinkbench.stack.external import load_stack_file
from tests.support.commands import Command
from tests.support.sinkpackage import install

TINY = """
from sinkbench.sinks import SinkKind
from sinkbench.stack import Endpoint
from sinkbench.stack.registry import About, SinkService
from sinkbench.stack.sections import SinkSection


class Section(SinkSection):
    address_key = "where"
    where: str

    def endpoint(self):
        return Endpoint(self.where)


class Tiny:
    def __init__(self, where):
        self.where = where


def kind(name="tiny", service="tiny"):
    ready = lambda endpoint, shared, seconds: f"{endpoint.address} is not there"
    about = lambda endpoint: About("1")
    services = (SinkService(name=service, title="Tiny", section=Section, ready=ready, about=about),)
    open_tiny = lambda endpoints, checkout: Tiny(endpoints.sinks["tiny"].address)
    return SinkKind(name=name, services=services, open=open_tiny, writers={}, stamps=True)


KIND = kind()
TAKEN = kind("kafka", "kafka")
NO_KIND = "a text"
"""
LEAST = "kafka: {bootstrap: b:9092}\nconnect: {urls: http://c:8083}\n"
Bring = Callable[..., None]


def forget() -> None:
    for cached in (registry._registered, registry.declared_sink, registry.sink_services):
        cached.cache_clear()


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bring]:
    """Installs a package that brings sinks, for as long as the test lasts."""
    (tmp_path / "tinysink.py").write_text(TINY)
    monkeypatch.syspath_prepend(tmp_path)

    def brought(package: str = "sinkbench-tiny", **sinks: str) -> None:
        install(tmp_path, package, **sinks)
        forget()

    yield brought
    sys.modules.pop("tinysink", None)
    monkeypatch.undo()
    forget()


def test_a_sink_of_another_package_has_its_section_its_check_and_is_opened(bring: Bring, tmp_path: Path) -> None:
    bring(tiny="tinysink:KIND")
    (tmp_path / "mine.yaml").write_text(f"{LEAST}tiny: {{where: over there}}\n")
    endpoints = load_stack_file(tmp_path / "mine.yaml").endpoints()
    assert sinks_of(endpoints) == ["tiny"]
    assert checks(endpoints)["tiny"]() == "over there is not there"
    sink: Sink = open_sink("tiny", endpoints, tmp_path)
    assert sink.where == "over there"  # type: ignore[attr-defined]
    assert stamping_sinks() == ["postgres", "tiny"]
    # Its section is read as strictly as ours.
    (tmp_path / "mine.yaml").write_text(f"{LEAST}tiny: {{wher: over there}}\n")
    with pytest.raises(StackError, match=r"mine.yaml:3: unknown key 'wher' in tiny; did you mean 'where'"):
        load_stack_file(tmp_path / "mine.yaml")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("nosuchmodule:KIND", "cannot be loaded: ModuleNotFoundError: No module named 'nosuchmodule'"),
        ("tinysink:NOTHING", "cannot be loaded: AttributeError"),
        ("tinysink:NO_KIND", "is no SinkKind with that name"),
    ],
)
def test_a_sink_that_cannot_be_used_is_one_line_that_names_its_package(
    bring: Bring, tmp_path: Path, sinkbench: Command, value: str, says: str
) -> None:
    bring(tiny=value)
    with pytest.raises(StackError, match="the sink tiny of the package sinkbench-tiny") as refused:
        sink_kind("tiny")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    (tmp_path / "mine.yaml").write_text(LEAST)
    assert says in sinkbench.refused("up", "--stack", tmp_path / "mine.yaml")
    # The others can be used all the same where they are named.
    assert sink_kind("postgres").name == "postgres"


def test_a_sink_with_the_name_of_a_service_is_refused(bring: Bring) -> None:
    bring("first", tiny="tinysink:KIND", kafka="tinysink:TAKEN")
    with pytest.raises(StackError, match="the sink kafka: its service kafka has a name that is taken"):
        registry.sink_services()


def test_a_sink_that_there_is_not_is_named_with_those_that_there_are(tmp_path: Path) -> None:
    nowhere = Endpoints("", {}, {})
    said = "connectors/oracle: no sink is called that; there are elasticsearch, postgres"
    with pytest.raises(StackError, match=said):
        open_sink("oracle", nowhere, tmp_path)
    with pytest.raises(StackError, match="this stack: has no 'postgres', which a pipeline of the plan writes to"):
        open_sink("postgres", nowhere, tmp_path)
    with pytest.raises(StackError, match="oracle: no sink that is installed has this service"):
        checks(Endpoints("", {}, {}, {"oracle": Endpoint("over there")}))
