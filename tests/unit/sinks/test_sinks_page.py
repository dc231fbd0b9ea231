"""docs/sinks.md names every method of a sink and every capability."""

import re
from dataclasses import fields

from sinkbench.settings import CHECKOUT
from sinkbench.sinks.kind import Capabilities, Sink

PAGE = (CHECKOUT / "docs" / "sinks.md").read_text(encoding="utf-8")


def test_the_page_lists_every_method_and_capability() -> None:
    listed = set(re.findall(r"`(\w+)(?:\([^`]*\))?`", PAGE))
    methods = {name for name in vars(Sink) if not name.startswith("_")}
    assert methods | {each.name for each in fields(Capabilities)} <= listed
