"""The command that a person asks a service by."""

from __future__ import annotations

import shlex
from pathlib import Path

from sinkbench.services.access import Access, curl

SECRET = "swordfish"  # noqa: S105


def test_a_service_that_lets_anybody_in_is_asked_by_curl_alone() -> None:
    assert curl(Access()) == "curl"


def test_curl_trusts_the_services_ca_and_asks_for_the_password_itself() -> None:
    command = curl(Access(user="bench", password=SECRET, ca=Path("/stack/ca.pem")))
    assert command == "curl --cacert /stack/ca.pem -u bench"


def test_a_shell_takes_file_and_user_as_they_are() -> None:
    command = curl(Access(user="o'neil $HOME", password=SECRET, ca=Path("/my stack/ca.pem")))
    assert shlex.split(command) == ["curl", "--cacert", "/my stack/ca.pem", "-u", "o'neil $HOME"]


def test_a_key_is_read_from_a_file_that_whoever_has_it_makes() -> None:
    command = curl(Access(api_key=SECRET))
    assert command == "curl -H @API_KEY_FILE"
