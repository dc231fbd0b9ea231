"""What `--fix` prints for whoever wants it undone."""

from __future__ import annotations

from pathlib import Path

from sinkbench.doctor.diagnosis import Change
from sinkbench.doctor.mend import undo
from sinkbench.services.access import Access
from sinkbench.stack import Endpoint, Endpoints

ACCESS = Access(user="bench", password="swordfish", ca=Path("/ca.pem"))  # noqa: S106


def endpoints(access: Access) -> Endpoints:
    sinks = {"elasticsearch": Endpoint("https://e:9200", access=access)}
    return Endpoints("k:1", {"connect-1": "https://c:1"}, {}, sinks, connect_access=access)


def test_what_undoes_a_change_is_let_in_to_a_secured_stack_and_holds_no_password() -> None:
    secured = "curl --cacert /ca.pem -u bench"
    stopped = undo(endpoints(ACCESS), Change(None, "b"), None)
    assert stopped == f"{secured} -X PUT https://c:1/connectors/b/resume"
    change = Change("elasticsearch", "tides_1", "index.refresh_interval", None)
    assert undo(endpoints(ACCESS), change, "1s") == (
        f"{secured} -X PUT https://e:9200/tides_1/_settings"
        """ -H 'Content-Type: application/json' -d '{"index.refresh_interval": "1s"}'"""
    )


def test_what_was_the_default_becomes_the_default_again() -> None:
    change = Change("elasticsearch", "tides_1", "index.number_of_replicas", "0")
    said = undo(endpoints(Access()), change, None)
    assert said.startswith("curl -X PUT https://e:9200/tides_1/_settings ")
    assert said.endswith("""-d '{"index.number_of_replicas": null}'""")
