"""The command by which a person asks a service."""

import shlex
from pathlib import Path

from sinkbench.services.access import Access, curl


def test_curl_gets_all_that_lets_it_in_but_no_secret() -> None:
    access = Access(user="o'neil $HOME", password="swordfish", ca=Path("/a b.pem"))  # noqa: S106
    assert shlex.split(curl(access)) == ["curl", "--cacert", "/a b.pem", "-u", "o'neil $HOME"]
    assert curl(Access()) == "curl"
