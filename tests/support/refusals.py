"""What the services of a secured stack must refuse, wherever they run: all of them are asked."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import psycopg
import pytest
import trustme
from psycopg.conninfo import make_conninfo

from sinkbench.services.access import Access
from sinkbench.services.http import http_client
from sinkbench.services.kafka import Kafka
from sinkbench.stack import Endpoints

DATABASES = ("postgres", "pgbouncer")


def strangers_are_refused(endpoints: Endpoints, folder: Path) -> None:
    """Wrong passwords, plain text and another authority are refused; whoever is let in is so by TLS 1.3."""
    _refuse_wrong_passwords(endpoints)
    _refuse_plain_text(endpoints)
    _do_not_convince_who_trusts_another_authority(endpoints, folder)
    with psycopg.connect(endpoints.sinks["postgres"].address) as connection:
        rows = connection.execute("SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl").fetchall()
    assert [version for (version,) in rows] == ["TLSv1.3"]


def _refuse_wrong_passwords(endpoints: Endpoints) -> None:
    said = Kafka(endpoints.kafka, {**endpoints.kafka_settings, "sasl.password": "wrong"}).problem()
    assert "uthentication failed" in str(said)
    for url, access in _asked_by_http(endpoints):
        for other in (replace(access, password="wrong"), replace(access, user=None)):  # noqa: S106
            with http_client(other, 10) as http:
                assert http.get(url).status_code == httpx.codes.UNAUTHORIZED, url
    for name in DATABASES:
        with pytest.raises(psycopg.OperationalError, match="authentication failed"):
            psycopg.connect(make_conninfo(endpoints.sinks[name].address, password="wrong"))  # noqa: S106


def _refuse_plain_text(endpoints: Endpoints) -> None:
    assert Kafka(endpoints.kafka).problem(3) is not None
    for url, _ in _asked_by_http(endpoints):
        with pytest.raises(httpx.TransportError):
            httpx.get(url.replace("https://", "http://"), timeout=10)
    for name, refusal in zip(DATABASES, ("no encryption", "SSL required"), strict=True):
        with pytest.raises(psycopg.OperationalError, match=refusal):
            psycopg.connect(make_conninfo(endpoints.sinks[name].address, sslmode="disable"))


def _do_not_convince_who_trusts_another_authority(endpoints: Endpoints, folder: Path) -> None:
    foreign = folder / "foreign.pem"
    trustme.CA().cert_pem.write_to_path(str(foreign))
    said = Kafka(endpoints.kafka, {**endpoints.kafka_settings, "ssl.ca.location": str(foreign)}).problem()
    assert "certificate verify failed" in str(said)
    for url, access in _asked_by_http(endpoints):
        with http_client(replace(access, ca=foreign), 10) as http, pytest.raises(httpx.ConnectError, match="verify"):
            http.get(url)
    for name in DATABASES:
        with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
            psycopg.connect(make_conninfo(endpoints.sinks[name].address, sslrootcert=str(foreign)))


def _asked_by_http(endpoints: Endpoints) -> Iterator[tuple[str, Access]]:
    yield f"{endpoints.connect['connect-1']}/connectors", endpoints.connect_access
    yield endpoints.sinks["elasticsearch"].address, endpoints.sinks["elasticsearch"].access
    for url in endpoints.loadgens.values():
        yield f"{url}/load", endpoints.loadgen_access
