"""Arms of a plan on real services: each has its own configuration, and they are compared."""

from pathlib import Path

import pytest

from sinkbench.stack.local import LocalStack
from tests.e2e.ownstacks import own_stack
from tests.support.commands import Run, refuses, succeeded
from tests.support.latest import summary_of
from tests.support.trials import quick_plan

PLAN = quick_plan("postgres/jdbc", window=3) + "arms: {base: {}, head: {overrides: {HEAD}}}\n"


def test_each_arm_has_its_own_configuration_and_compare_sets_them_against_each_other(
    stack: LocalStack, sinkbench: Run, tmp_path: Path
) -> None:
    (tmp_path / "arms.yaml").write_text(PLAN.replace("HEAD", "batch.size: 20"))
    succeeded(sinkbench("race", "arms.yaml"))
    base, head = summary_of(tmp_path)["cells"]
    assert [base["arm"], head["arm"]] == ["base", "head"]
    assert head["records_per_write"] <= 20 < base["records_per_write"]
    compared = sinkbench("compare")
    assert compared.returncode == 3
    assert "too few trials" in compared.stdout
    assert "overrides.batch.size" in compared.stdout


def test_a_version_that_no_worker_has_is_refused(stack: LocalStack, sinkbench: Run, tmp_path: Path) -> None:
    (tmp_path / "arms.yaml").write_text(PLAN.replace("HEAD", "connector.plugin.version: 9.9.9"))
    done = refuses(sinkbench("race", "arms.yaml"))
    assert "but not 9.9.9; install it" in done.stdout + done.stderr


@pytest.mark.rare
def test_arms_of_a_heap_and_of_settings_get_a_second_stack_that_leaves_nothing(sinkbench: Run, tmp_path: Path) -> None:
    postgres = "shared_buffers=64MB wal_level=logical"
    small = f"{{CONNECT_HEAP: 512m, POSTGRES_SETTINGS: {postgres}, KAFKA_SETTINGS: num.io.threads=4}}"
    with own_stack("stack of arms", 1700) as stack:
        (tmp_path / "arms.yaml").write_text(PLAN.replace("{overrides: {HEAD}}", f"{{variables: {small}}}"))
        done = succeeded(sinkbench("race", "arms.yaml"))
        assert "starting a stack with CONNECT_HEAP=512m, KAFKA_SETTINGS=num.io.threads=4, POSTGRES" in done.stdout
        found = summary_of(tmp_path)
        base, head = found["cells"]
        assert (base["variables"], head["variables"]["CONNECT_HEAP"]) == ({}, "512m")
        assert found["environment"]["jvm"]["connect"]["flags"]["Xmx"] == "768m or 512m"
        assert found["environment"]["sink_settings"]["postgres"]["shared_buffers"] == "128MB or 64MB"
        # Each cell was measured on its own stack.
        levels = [cell["durability"]["settings"]["wal_level"] for cell in (base, head)]
        assert levels == ["replica", "logical"]
        assert stack.start_id() is None
        assert not list(stack.home.glob("sibling-*"))
        (tmp_path / "arms.yaml").write_text(
            PLAN.replace("{overrides: {HEAD}}", "{variables: {POSTGRES_BIN: /nowhere}}")
        )
        broken = refuses(sinkbench("race", "arms.yaml"))
        assert "postgres" in broken.stdout + broken.stderr
        assert stack.start_id() is None
