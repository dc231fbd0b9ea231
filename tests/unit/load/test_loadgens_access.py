"""The controller shows load generators who it is, over TLS, and says in a line why one does not let it in."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadgen.server import make_app
from loadgen.service import LoadService
from sinkbench.errors import TrialFailed
from sinkbench.load.loadgens import Loadgens
from sinkbench.plan.plan import PlanLoad
from sinkbench.services.access import Access
from tests.support.endpoints import endpoints
from tests.support.tlsserver import Issued, issue, served

USER, SECRET = "bench", "hunter2-hunter2"


@pytest.fixture
def files(tmp_path: Path) -> Issued:
    return issue(tmp_path)


@pytest.fixture
def port(files: Issued) -> Iterator[int]:
    """A load generator with a certificate and a user."""
    with served(make_app(LoadService({}), users={USER: SECRET}), files) as port:
        yield port


def refusal(url: str, access: Access) -> str:
    where = endpoints(loadgens={"loadgen-1": url}, loadgen_access=access)
    with Loadgens(where) as loadgens, pytest.raises(TrialFailed) as refused:
        loadgens.load("tides_t1", "t1", 300, PlanLoad(partitions=3), lambda _: None)
    said = str(refused.value)
    assert "\n" not in said
    assert SECRET not in said
    return said


@pytest.mark.parametrize(("user", "password"), [(USER, "wrong-wrong"), ("other", SECRET), (None, None)])
def test_a_wrong_password_is_reported(port: int, files: Issued, user: str | None, password: str | None) -> None:
    said = refusal(f"https://127.0.0.1:{port}", Access(user=user, password=password, ca=files.ca))
    assert f"loadgen-1 at https://127.0.0.1:{port} refuses user and password (Authorization: no known user" in said
    assert said.endswith("; correct these")


@pytest.mark.parametrize(
    ("scheme", "ca", "words"),
    [
        ("https", "foreign-ca.pem", r"loadgen-1 at https://127.* cannot be reached \(ConnectError: \[SSL: CERT"),
        ("http", None, "loadgen-1 at http://127.* cannot be reached"),
        ("https", "gone.pem", "the load generators cannot be asked: .*/gone.pem"),
    ],
)
def test_no_password_is_shown_without_tls_that_is_trusted(
    port: int, tmp_path: Path, scheme: str, ca: str | None, words: str
) -> None:
    issue(tmp_path, "foreign")
    access = Access(user=USER, password=SECRET, ca=tmp_path / ca if ca else None)
    assert re.search(words, refusal(f"{scheme}://127.0.0.1:{port}", access))
