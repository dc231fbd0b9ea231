"""Java stack traces, as `Throwable.printStackTrace` writes them."""

from __future__ import annotations

_CAUSED_BY = "Caused by: "


def causes_in(trace: str) -> list[str]:
    """The exception of a Java stack trace and its causes, the innermost last, each as `class: message`."""
    lines = trace.strip().splitlines()
    inner = (line.removeprefix(_CAUSED_BY) for line in lines if line.startswith(_CAUSED_BY))
    return [lines[0].strip(), *inner] if lines else []
