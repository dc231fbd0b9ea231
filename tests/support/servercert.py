"""Until when the certificate is valid that a server shows. Nothing is sent to it but the greeting."""

from __future__ import annotations

import socket
import ssl
from datetime import datetime

from cryptography import x509

__all__ = ["POSTGRES", "certificate_until"]

TIMEOUT_SECONDS = 3.0
POSTGRES = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
"""SSLRequest of PostgreSQL's protocol, which is answered by the byte S if TLS may begin."""


def certificate_until(host: str, port: int, request: bytes = b"") -> datetime | None:
    """When the certificate of a server expires, whoever has signed it.

    Args:
        host, port: where the server listens.
        request: what asks for TLS; empty where it begins at once.

    Returns:
        None if nothing answers there, or not with TLS.
    """
    # Whether it can be trusted is up to the clients; here it is looked at alone.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), TIMEOUT_SECONDS) as plain:
            if request:
                plain.sendall(request)
                if plain.recv(1) != b"S":
                    return None
            with context.wrap_socket(plain, server_hostname=host) as secured:
                found = secured.getpeercert(binary_form=True)
        return None if found is None else x509.load_der_x509_certificate(found).not_valid_after_utc
    except (OSError, ValueError):
        return None
