"""What is read from the Docker engine's answers, and what is said of one that cannot be used."""

import re
from typing import Any

import pytest

from sinkbench.settings import CHECKOUT
from sinkbench.stack.composecli import LEAST_COMPOSE
from sinkbench.stack.engine import LEAST_ENGINE, refusal, too_old, used_by
from tests.support.present import present


def test_an_engine_that_is_too_old_is_named_with_its_version_and_the_reason() -> None:
    said = present(too_old({"Version": "20.10.24", "ApiVersion": "1.41"}))
    for part in ("20.10.24", LEAST_ENGINE, "start_interval", "upgrade"):
        assert part in said
    assert too_old({"Version": "25.0.0", "ApiVersion": "1.44"}) is None
    assert too_old({"Version": "99.0.0", "ApiVersion": "1.100"}) is None


def test_no_permission_and_no_engine_are_two_things() -> None:
    assert "usermod -aG docker" in refusal("('Connection aborted.', PermissionError(13, 'Permission denied'))")
    assert "scripts/docker-bootstrap" in refusal("[Errno 2] No such file or directory")


def test_the_bootstrap_script_asks_for_the_same_versions() -> None:
    text = (CHECKOUT / "scripts" / "docker-bootstrap").read_text()
    assert re.findall(r"^LEAST_(?:ENGINE|COMPOSE)=(.+)$", text, re.MULTILINE) == [LEAST_ENGINE, LEAST_COMPOSE]


STATS = {
    "cpu_stats": {"cpu_usage": {"total_usage": 2_500_000_000}},
    "memory_stats": {"usage": 900, "stats": {"anon": 500, "file": 300, "file_mapped": 40, "inactive_file": 200}},
}


@pytest.mark.parametrize(
    ("stats", "used"),
    [
        (STATS, (2.5, 540.0)),
        ({"memory_stats": {"stats": {"total_rss": 500, "total_mapped_file": 40, "rss": 1}}}, (None, 540.0)),
        ({"cpu_stats": {"cpu_usage": {"total_usage": 0}}, "memory_stats": {}}, (None, None)),
    ],
)
def test_one_answer_has_cpu_time_and_memory(stats: dict[str, Any], used: tuple[float | None, float | None]) -> None:
    assert used_by(stats) == used
