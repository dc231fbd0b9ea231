"""The controller shows load generators who it is, over TLS, and says in a line why one does not let it in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sinkbench.load.loadgens as load_module
from loadgen import Load, Summary
from loadgen.server import make_app
from loadgen.service import LoadService
from sinkbench.errors import TrialFailed
from sinkbench.load.loadgens import Loadgens, LoadResult
from sinkbench.plan.plan import PlanLoad
from sinkbench.services.access import Access
from tests.support.endpoints import endpoints
from tests.support.summaries import summary
from tests.support.tlsserver import Issued, issue, served

USER, SECRET = "bench", "hunter2-hunter2"
RECORDS = 300


class Engine:
    """Stands in for a load: all its records are acknowledged at once."""

    def __init__(self) -> None:
        self.loads: list[Load] = []

    def __call__(self, load: Load, *_: Any) -> Summary:
        self.loads.append(load)
        return summary({**load.model_dump(), "count": load.count or 0})


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_module, "POLL_SECONDS", 0.01)


@pytest.fixture
def files(tmp_path: Path) -> Issued:
    return issue(tmp_path)


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def port(files: Issued, engine: Engine) -> Iterator[int]:
    """A load generator with a certificate and a user."""
    with served(make_app(LoadService({}, engine), users={USER: SECRET}), files) as port:
        yield port


def run(url: str, access: Access) -> LoadResult:
    where = endpoints(loadgens={"loadgen-1": url}, loadgen_access=access)
    with Loadgens(where) as loadgens:
        return loadgens.load("tides_t1", "t1", RECORDS, PlanLoad(partitions=3), lambda _: None)


def refusal(url: str, access: Access) -> str:
    with pytest.raises(TrialFailed) as refused:
        run(url, access)
    said = str(refused.value)
    assert "\n" not in said
    assert SECRET not in said
    return said


def test_a_user_with_the_password_has_a_load_done(port: int, files: Issued, engine: Engine) -> None:
    access = Access(user=USER, password=SECRET, ca=files.ca)
    assert run(f"https://127.0.0.1:{port}", access).acknowledged == RECORDS
    assert [(load.topic, load.count) for load in engine.loads] == [("tides_t1", RECORDS)]


@pytest.mark.parametrize(("user", "password"), [(USER, "wrong-wrong"), ("other", SECRET), (None, None)])
def test_a_wrong_password_is_reported(
    port: int, files: Issued, engine: Engine, user: str | None, password: str | None
) -> None:
    said = refusal(f"https://127.0.0.1:{port}", Access(user=user, password=password, ca=files.ca))
    assert f"loadgen-1 at https://127.0.0.1:{port} refuses user and password (Authorization: no known user" in said
    assert said.endswith("; correct these")
    assert engine.loads == []


def test_no_password_is_shown_to_a_server_with_a_foreign_certificate(port: int, tmp_path: Path, engine: Engine) -> None:
    access = Access(user=USER, password=SECRET, ca=issue(tmp_path, "foreign").ca)
    said = refusal(f"https://127.0.0.1:{port}", access)
    assert "loadgen-1 at https://127.0.0.1" in said
    assert "cannot be reached (ConnectError: [SSL: CERTIFICATE_VERIFY_FAILED]" in said
    assert engine.loads == []


def test_plain_text_gets_no_load_where_tls_is_spoken(port: int, engine: Engine) -> None:
    assert "cannot be reached" in refusal(f"http://127.0.0.1:{port}", Access(user=USER, password=SECRET))
    assert engine.loads == []


def test_a_ca_that_has_gone_is_named(port: int, tmp_path: Path) -> None:
    said = refusal(f"https://127.0.0.1:{port}", Access(user=USER, password=SECRET, ca=tmp_path / "gone.pem"))
    assert "the load generators cannot be asked: " in said
    assert str(tmp_path / "gone.pem") in said
