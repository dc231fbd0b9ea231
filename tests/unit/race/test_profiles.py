"""Profiles of trials that are not valid."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from sinkbench.errors import StackError
from sinkbench.race import profiles
from sinkbench.stack.profiler import Profiler
from sinkbench.trial.workloads.drain import Drain
from tests.support.fakecluster import resources
from tests.support.reasons import because
from tests.support.trials import a_cell, trial


def test_a_trial_that_is_not_valid_has_no_profile_and_its_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lossy = trial(invalid=[], reasons=[because("LOST 3 of 9")])
    monkeypatch.setattr(profiles, "run_trial", lambda *_: (lossy, []))
    cluster = SimpleNamespace(stack=SimpleNamespace(profiler=Profiler(dict, tmp_path)))
    with pytest.raises(StackError, match="LOST 3 of 9"):
        list(profiles.profiles_of(resources(cluster, a_cell()), Drain(), tmp_path))
