"""A door before an HTTP service of the test stack: TLS, and a user and a password, as somebody's own cluster has."""

import base64
import contextlib
import ssl
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import httpx
import trustme

from tests.support.parrots import served

# Of one connection only, or told anew by whoever answers.
NOT_PASSED_ON = {"host", "connection", "authorization", "transfer-encoding", "content-length", "content-encoding"}


@contextlib.contextmanager
def door(target: str, ca: trustme.CA, user: str, password: str) -> Iterator[str]:
    """Serves what `target` serves, at the https address that it yields, to whoever shows user and password."""
    expected = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    client = httpx.Client(timeout=60, trust_env=False)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if self.headers.get("authorization") != expected:
                self._send(401, [], b'{"message": "unable to authenticate this user"}')
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() not in NOT_PASSED_ON}
            answer = client.request(
                self.command, target + self.path, content=body, headers={**headers, "accept-encoding": "identity"}
            )
            self._send(answer.status_code, list(answer.headers.items()), answer.content)

        def _send(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in NOT_PASSED_ON:
                    self.send_header(name, value)
            # An answer without a body must not say how long it is.
            if status != httpx.codes.NO_CONTENT:
                self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815

        def log_message(self, format: str, *arguments: object) -> None:
            """Says nothing."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    with client, served(Handler, context) as port:
        yield f"https://127.0.0.1:{port}"
