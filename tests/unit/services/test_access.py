"""The command by which a person asks a service."""

import shlex
from pathlib import Path

import pytest

from sinkbench.services.access import Access, curl

SECRET = "swordfish"  # noqa: S105


@pytest.mark.parametrize(
    ("access", "words"),
    [
        (Access(), []),
        (
            Access(user="o'neil $HOME", password=SECRET, ca=Path("/a b.pem")),
            ["--cacert", "/a b.pem", "-u", "o'neil $HOME"],
        ),
        (Access(api_key=SECRET), ["-H", "@API_KEY_FILE"]),
    ],
)
def test_curl_gets_all_that_lets_it_in_but_no_secret(access: Access, words: list[str]) -> None:
    assert shlex.split(curl(access)) == ["curl", *words]
