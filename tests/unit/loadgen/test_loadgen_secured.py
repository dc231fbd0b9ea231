"""loadgen's HTTP interface over TLS, with a user: what is let in, what is refused, and where it may listen without."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

import loadgen.cli as cli
from loadgen import httpthread
from loadgen.serve import lacking
from loadgen.server import make_app
from loadgen.service import LoadService
from sinkbench.services.access import Access
from sinkbench.services.http import http_client
from tests.support.tlsserver import NO_CHECK_TIME, Issued, issue, served

USER, SECRET = "bench", "hunter2-hunter2"
LOADGEN = [sys.executable, "-m", "loadgen", "serve"]


def trusting(files: Issued) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=files.ca)


@pytest.fixture
def files(tmp_path: Path) -> Issued:
    return issue(tmp_path)


def asked(port: int, files: Issued, path: str = "/load", user: str | None = USER, password: str = SECRET) -> int:
    auth = None if user is None else (user, password)
    with httpx.Client(verify=trusting(files), trust_env=False, auth=auth) as client:
        return client.get(f"https://127.0.0.1:{port}{path}").status_code


def test_a_user_is_let_in_by_the_password_alone(files: Issued) -> None:
    with served(make_app(LoadService({}), users={USER: SECRET}), files) as port:
        assert asked(port, files) == 200
        assert asked(port, files, password="wrong-wrong") == 401  # noqa: S106
        assert asked(port, files, user="other") == 401
        assert asked(port, files, user=None) == 401
        assert asked(port, files, "/health", user=None) == 200
        assert asked(port, files) == 200


def test_plain_text_is_refused_where_tls_is_spoken(files: Issued) -> None:
    with served(make_app(LoadService({})), files) as port:
        with httpx.Client(trust_env=False) as client, pytest.raises(httpx.TransportError):
            client.get(f"http://127.0.0.1:{port}/health")
        assert asked(port, files) == 200


def test_a_client_that_trusts_another_authority_sends_nothing(files: Issued, tmp_path: Path) -> None:
    foreign = issue(tmp_path, "foreign")
    with served(make_app(LoadService({})), files) as port:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            asked(port, foreign)
        assert asked(port, files) == 200


def test_a_client_sends_nothing_to_one_whose_certificate_has_expired_while_it_runs(tmp_path: Path) -> None:
    day = timedelta(days=1)
    expired = issue(tmp_path, "expired", begins=-3 * day, ends=-day)
    with served(make_app(LoadService({}), users={USER: SECRET}), expired, began=-2 * day) as port:
        access = Access(user=USER, password=SECRET, ca=expired.ca)
        with http_client(access, 10) as client, pytest.raises(httpx.ConnectError, match="certificate has expired"):
            client.get(f"https://127.0.0.1:{port}/load")
        # Nothing else is the matter with it.
        context = trusting(expired)
        context.verify_flags |= NO_CHECK_TIME
        with httpx.Client(verify=context, trust_env=False, auth=(USER, SECRET)) as client:
            assert client.get(f"https://127.0.0.1:{port}/load").status_code == 200


@pytest.mark.parametrize(("scheme", "status"), [("https", 200), ("http", 403)])
def test_its_own_pages_come_by_tls_too(files: Issued, scheme: str, status: int) -> None:
    with served(make_app(LoadService({})), files) as port, httpx.Client(verify=trusting(files)) as client:
        origin = {"Origin": f"{scheme}://127.0.0.1:{port}"}
        assert client.get(f"https://127.0.0.1:{port}/load", headers=origin).status_code == status


def test_nobody_says_for_another_by_which_scheme_a_client_comes() -> None:
    with served(make_app(LoadService({}))) as port:
        headers = {"Origin": f"https://127.0.0.1:{port}", "X-Forwarded-Proto": "https"}
        assert httpx.get(f"http://127.0.0.1:{port}/load", headers=headers).status_code == 403


def test_clients_that_do_not_begin_with_tls_or_fall_silent_after_it_are_closed(
    files: Issued, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(httpthread, "IDLE_SECONDS", 2)
    with served(make_app(LoadService({})), files) as port:
        never, later = (socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(2))
        with never, trusting(files).wrap_socket(later, server_hostname="127.0.0.1") as silent:
            assert never.recv(1) == b""
            assert silent.recv(1) == b""
        assert asked(port, files) == 200


def test_it_ends_though_a_client_does_not_say_goodbye(files: Issued) -> None:
    with served(make_app(LoadService({})), files) as port:
        plain = socket.create_connection(("127.0.0.1", port), timeout=20)
        silent = trusting(files).wrap_socket(plain, server_hostname="127.0.0.1")
    with silent:
        pass


@pytest.mark.parametrize(
    ("tls", "users", "private_network", "options"),
    [
        (True, True, False, []),
        (False, False, True, []),
        (True, False, False, ["--users"]),
        (False, True, False, ["--tls-certificate", "--tls-key"]),
        (False, False, False, ["--tls-certificate", "--tls-key", "--users"]),
    ],
)
def test_what_others_can_reach_wants_tls_and_users(
    tls: bool, users: bool, private_network: bool, options: list[str]
) -> None:
    assert lacking(tls=tls, users=users, private_network=private_network) == options


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:18090", "[2001:db8::1]:18090"])
def test_it_does_not_listen_elsewhere_than_on_loopback_without(listen: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", "--listen", listen]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        f"loadgen: listen: {listen} can be reached from other machines, and nothing keeps them out; add"
        " --tls-certificate, --tls-key, --users, or --private-network if nobody else is on its network\n"
    )


def test_tls_alone_does_not_do(files: Issued, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--tls-certificate", str(files.certificate), "--tls-key", str(files.key)]
    assert cli.main(["serve", "--listen", "0.0.0.0:0", *options]) == 2
    assert "; add --users, or --private-network " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("listen", "options"),
    [("127.0.0.1:0", []), ("127.8.7.6:0", []), ("localhost:0", []), ("0.0.0.0:0", ["--private-network"])],
)
def test_on_loopback_and_on_a_private_network_it_does(listen: str, options: list[str]) -> None:
    done = subprocess.run(
        [*LOADGEN, "--listen", listen, "--exit-on-eof", *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("loadgen: listening on http://")


def test_with_a_certificate_that_ends_tomorrow_and_a_user_it_listens_everywhere_and_warns(tmp_path: Path) -> None:
    files = issue(tmp_path, ends=timedelta(hours=24))
    users = tmp_path / "users"
    users.touch(mode=0o600)
    users.write_text(f"{USER}:{SECRET}\n")
    options = ["--tls-certificate", str(files.certificate), "--tls-key", str(files.key), "--users", str(users)]
    with subprocess.Popen(
        [*LOADGEN, "--listen", "0.0.0.0:0", "--exit-on-eof", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith("loadgen: listening on https://0.0.0.0:")
            port = int(said.rpartition(":")[2])
            assert asked(port, files) == 200
            assert asked(port, files, user=None) == 401
            line = Path(f"/proc/{process.pid}/cmdline").read_text() + Path(f"/proc/{process.pid}/environ").read_text()
            assert "hunter2" not in line
        finally:
            out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err.startswith(f"loadgen: tls-certificate: {files.certificate}: expires at ")
    assert err.count("\n") == 1
    assert "hunter2" not in out + err
