"""Imports go one way: from what a user touches down to plain values, and what decides never touches a service."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sinkbench

ROOT = Path(sinkbench.__file__).parent
# Each room may import those that stand after its name, those of lower lines of `BELOW`, and what lies at the top.
DECIDES = {
    "results": "",
    "analysis": "",
    "plan": "analysis",
    "bottleneck": "analysis",
    "metrics": "plan bottleneck analysis",
    "summary": "metrics plan bottleneck analysis",
    "claims": "summary metrics plan bottleneck analysis",
    "runs": "summary metrics plan bottleneck analysis",
    "tables": "runs summary metrics plan bottleneck analysis",
    "size": "tables runs summary metrics plan bottleneck analysis",
    "report": "claims tables runs summary metrics plan bottleneck analysis",
}
TOUCHES = {
    "services": "analysis",
    # A stack file has a section for each sink, which `stack.registry` finds by its entry point: no import names a sink.
    "stack": "services",
    "sinks": "stack services bottleneck analysis",
    "load": "stack services plan analysis",
    "trial": "load sinks stack services summary metrics plan bottleneck analysis",
    "live": "trial services tables runs summary metrics plan analysis",
    "environment": "trial sinks stack services plan analysis",
    "verify": "sinks stack services tables analysis",
    "limits": "trial load sinks stack services summary metrics plan analysis",
    "doctor": "race environment trial sinks stack services plan analysis",
    "race": "limits live environment trial load sinks stack services tables runs summary metrics plan analysis",
}
ROOMS = {room: {"results", *below.split()} for room, below in {**DECIDES, **TOUCHES}.items()}
ROOMS["cli"] = set(ROOMS)
CLIENTS = {"confluent_kafka", "psycopg", "elasticsearch", "httpx", "docker", "psutil"}


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            # `from sinkbench import plan` names a room, too.
            names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
        elif isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
    return names


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_imports_only_what_is_below_it(room: str) -> None:
    wrong = []
    for file in sorted((ROOT / room).rglob("*.py")):
        parts = {tuple(name.split(".")) for name in imported(file)}
        used = {each[1] for each in parts if each[0] == "sinkbench" and len(each) > 1} & set(ROOMS)
        wrong += [f"{file.relative_to(ROOT)} uses {other}" for other in sorted(used - ROOMS[room] - {room})]
        if room in DECIDES:
            wrong += [f"{file.relative_to(ROOT)} uses {each[0]}" for each in parts if each[0] in CLIENTS]
    assert wrong == []


def test_every_module_lies_in_a_room_and_few_at_the_top() -> None:
    assert {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"} == set(ROOMS)
    assert len(list(ROOT.glob("*.py"))) <= 9


def test_every_room_says_what_lives_there() -> None:
    assert [room for room in ROOMS if not ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text()))] == []


def test_clients_exceptions_end_where_the_client_is_called() -> None:
    # What a service's client raises is named in these alone; everywhere else it is a `ServiceError`.
    edges = ("services", "sinks", "stack", "environment/services.py")
    named = re.compile(r"HTTPError|TransportError|ApiError|KafkaException|psycopg\.(\w*Error|errors)|RequestError")
    found = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if named.search(path.read_text())}
    assert {name for name in found if not name.startswith(edges)} == set()


@pytest.mark.long
def test_what_decides_loads_no_client() -> None:
    rooms = [f"sinkbench.{room}.{path.stem}" for room in DECIDES for path in (ROOT / room).glob("[a-z]*.py")]
    script = f"import importlib, sys; [importlib.import_module(name) for name in {[*rooms, 'sinkbench.live.state']}]"
    loaded = f"sys.exit(' '.join({CLIENTS} & sys.modules.keys()) or 0)"
    done = subprocess.run([sys.executable, "-c", f"{script}; {loaded}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
