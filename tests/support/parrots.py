"""Services that repeat in their errors whatever secret they were shown, as careless ones do."""

import base64
import contextlib
import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

ASKS_FOR_PASSWORD = b"R" + struct.pack("!ii", 8, 3)
WANTS_TLS = struct.pack("!ii", 8, 80877103)
WANTS_GSS = struct.pack("!ii", 8, 80877104)


class HttpParrot(BaseHTTPRequestHandler):
    """An HTTP service that refuses everybody, and says with which user and password they came."""

    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        shown = self.headers.get("authorization", "")
        plain = ""
        with contextlib.suppress(ValueError):
            plain = base64.b64decode(shown.partition(" ")[2]).decode()
        body = f"who is {shown}, or {plain}?".encode()
        self.send_response(401, f"not {plain}")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing."""


class PostgresParrot(socketserver.BaseRequestHandler):
    """A PostgreSQL that refuses everybody, and repeats the password."""

    def handle(self) -> None:
        connection: socket.socket = self.request
        while connection.recv(8, socket.MSG_PEEK) in (WANTS_TLS, WANTS_GSS):
            connection.recv(8)
            connection.sendall(b"N")
        if not connection.recv(1 << 14):
            return
        connection.sendall(ASKS_FOR_PASSWORD)
        password = connection.recv(1 << 14)[5:-1].decode()
        fields = f"SFATAL\0C28P01\0Mwhat kind of password is {password}, or '{password}'?\0\0".encode()
        connection.sendall(b"E" + struct.pack("!i", len(fields) + 4) + fields)


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing: a client that does not trust the certificate hangs up."""


@contextlib.contextmanager
def served(handler: type[socketserver.BaseRequestHandler], tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of a service with this handler; it ends with the context."""
    server = _Server(("127.0.0.1", 0), handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
