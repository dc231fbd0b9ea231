"""When a pipeline needs no further pilot."""

import pytest

from sinkbench.race.pilots import is_warm
from sinkbench.trial.workloads.drain import Pilot


def visits(*seen: tuple[float | None, float | None]) -> list[Pilot]:
    return [Pilot(rate, compiling_share=share) for rate, share in seen]


@pytest.mark.parametrize(
    ("seen", "warm"),
    [
        ([(1_000, 0.02)], True),
        ([(1_000, 0.5)], False),
        ([(1_000, None)], False),
        ([(1_000, None), (1_100, None)], True),
        ([(1_000, None), (1_300, None)], False),
        ([(500, 0.5), (1_000, 0.02)], False),
        ([(500, 0.5), (1_000, 0.02), (1_050, 0.02)], True),
        ([(1_000, 0.02), (900, 0.3)], False),
        ([(None, None)], True),
        ([(None, None), (1_000, 0.02)], True),
        ([(None, None), (1_000, None)], False),
    ],
    ids=[
        "was warm before", "compiles", "nothing known of its JVMs", "as fast again", "faster again",
        "stopped compiling, but became faster", "stopped compiling, then as fast", "compiles again", "stores nothing",
        "came to life, warm", "came to life, nothing known",
    ],
)  # fmt: skip
def test_a_pipeline_is_warm_when_its_jvms_do_not_compile_and_it_becomes_no_faster(
    seen: list[tuple[float | None, float | None]], warm: bool
) -> None:
    assert is_warm(visits(*seen), 0.1) is warm
