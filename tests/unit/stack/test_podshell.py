"""Shells in pods by the Kubernetes client itself, whose server is made up of a socket."""

import base64
import hashlib
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sinkbench.stack.kubernetes import Api

POD = {"metadata": {"name": "connect-0"}, "spec": {"containers": [{"name": "worker"}]}}
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, section 1.3


def serve(server: socket.socket) -> tuple[str, bytes]:
    """Opens one WebSocket; returns what was requested, and what came until the other side closed."""
    connection, _ = server.accept()
    with connection, connection.makefile("rb") as stream:
        lines = list(iter(stream.readline, b"\r\n"))
        key = next(line.split()[1] for line in lines if line.lower().startswith(b"sec-websocket-key"))
        accept = base64.b64encode(hashlib.sha1(key + GUID, usedforsecurity=False).digest())
        upgraded = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        connection.settimeout(10)
        connection.sendall(upgraded + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        return lines[0].decode(), stream.read()


def test_a_shell_ends_when_it_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as pool:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        context, user = {"name": "c", "context": {"cluster": "c", "user": "u"}}, {"name": "u", "user": {}}
        parts = {"contexts": [context], "users": [user], "current-context": "c"}
        config = tmp_path / "config"
        config.write_text(json.dumps({**parts, "clusters": [{"name": "c", "cluster": {"server": address}}]}))
        monkeypatch.setenv("KUBECONFIG", str(config))
        served = pool.submit(serve, server)
        shell = Api("ns").shell(POD, "true", stdout=True)
        assert shell.is_open()
        assert not served.done()
        del shell
        asked, rest = served.result(10)
    assert asked.startswith("GET /api/v1/namespaces/ns/pods/connect-0/exec?")
    assert rest == b""
