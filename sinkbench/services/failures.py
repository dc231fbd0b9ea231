"""Where the exceptions of a service's client end: each becomes a `ServiceError`, with a text for a person."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from sinkbench.errors import ServiceError, SinkbenchError
from sinkbench.secrets import redacted

__all__ = ["in_one_line", "map_exceptions", "maps_exceptions"]

LONGEST = 200

Client = TypeVar("Client", bound=type)


def in_one_line(error: Exception) -> str:
    """What an error says, which may be many lines, in one short one; after its kind if it is none of ours."""
    said = str(error) if isinstance(error, SinkbenchError) else f"{type(error).__name__}: {_said_by(error)}"
    # Before it is cut: half a secret would not be found any more.
    return " ".join(redacted(said).split())[:LONGEST]


def _said_by(error: Exception) -> str:
    # As a text, those of Elasticsearch's transport name each of their layers, so that what happened would be cut off.
    layered = type(error).__module__.startswith("elastic_transport")
    return str(getattr(error, "message", error)) if layered else str(error)


@contextmanager
def map_exceptions(*kinds: type[Exception], to: type[ServiceError] = ServiceError) -> Iterator[None]:
    """Raises what a client raises as `to`.

    Args:
        kinds: the client's own exceptions; others pass.
        to: what becomes of them.
    """
    try:
        yield
    except kinds as error:
        raise to(in_one_line(error)) from error


def maps_exceptions(*kinds: type[Exception]) -> Callable[[Client], Client]:
    """A decorator of a class that talks to a service: its constructor and public methods raise `kinds` as ServiceError.

        @maps_exceptions(psycopg.Error)
        class PostgresSink: ...

    Generators are mapped as long as they run. Private methods still raise what the client raises.
    """

    def mapped(client: Client) -> Client:
        for name, method in list(vars(client).items()):
            if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
                setattr(client, name, _mapped(method, kinds))
        return client

    return mapped


def _mapped(method: Callable[..., Any], kinds: tuple[type[Exception], ...]) -> Callable[..., Any]:
    if not inspect.isgeneratorfunction(method):
        return map_exceptions(*kinds)(method)

    @wraps(method)
    def generator(*arguments: Any, **named: Any) -> Iterator[Any]:
        with map_exceptions(*kinds):
            yield from method(*arguments, **named)

    return generator
