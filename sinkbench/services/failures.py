"""Converts the exceptions of a service's client to `ServiceError`, with a readable text."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from sinkbench.errors import ServiceError, SinkbenchError
from sinkbench.secrets import quoted

LONGEST = 200

Client = TypeVar("Client", bound=type)


def in_one_line(error: Exception) -> str:
    """Returns an error's text, shortened to one line; its class precedes it unless it is one of sinkbench's."""
    # The text of Elasticsearch's transport errors names each layer, so that the cause would be cut off.
    layered = type(error).__module__.startswith("elastic_transport")
    said = str(getattr(error, "message", error)) if layered else str(error)
    if not isinstance(error, SinkbenchError):
        said = f"{type(error).__name__}: {said}"
    return quoted(said, LONGEST)


@contextmanager
def map_exceptions(*kinds: type[Exception], to: type[ServiceError] = ServiceError) -> Iterator[None]:
    """Raises the client's exceptions `kinds` as `to`; others pass."""
    try:
        yield
    except kinds as error:
        raise to(in_one_line(error)) from error


def maps_exceptions(*kinds: type[Exception]) -> Callable[[Client], Client]:
    """A class decorator: constructor and public methods, also running generators, raise `kinds` as ServiceError."""

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
