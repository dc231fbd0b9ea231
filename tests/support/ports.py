"""Ports that nobody has."""

import contextlib
import socket


def free_ports(count: int) -> list[int]:
    """So many different ports of 127.0.0.1 that are free now."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in found]
