"""A worker whose heap is really used up: an aggregate that never gets full, of large records that one task reads."""

from pathlib import Path

import pytest

from sinkbench.errors import ReasonCode
from sinkbench.stack.local import LocalStack
from tests.e2e.onetrial import one_trial
from tests.e2e.races import left_behind

# A gigabyte in one partition, for the heap of one worker.
RECORD_BYTES = 900_000
PLAN = f"""
pipelines:
  - pipeline: elasticsearch/camel-bulk
    overrides: {{camel.aggregation.size: 1_000_000, camel.aggregation.timeout: 600_000}}
load: {{record_bytes: {RECORD_BYTES}, keys: 1}}
drain: {{stall_seconds: 90}}
"""


@pytest.mark.long
@pytest.mark.rare
def test_a_worker_without_memory_is_named_with_what_to_do(stack: LocalStack, tmp_path: Path) -> None:
    assert stack.layout.heaps()["connect"] == "768m"
    try:
        record, _ = one_trial(stack, tmp_path, PLAN, 1_100)
    finally:
        stack.up(lambda line: None)
    assert [each.code for each in record.reasons] == [ReasonCode.OUT_OF_MEMORY], record
    (said,) = record.invalid
    assert said.startswith("connect-")
    assert (
        " died, out of memory: its Java heap was used up (exit code 3); give it more (SINKBENCH_CONNECT_HEAP)" in said
    )
    assert left_behind(stack) == []
