"""What the kernel shows in files of /proc and /sys."""

from __future__ import annotations

from pathlib import Path

__all__ = ["text_of"]


def text_of(path: Path) -> str | None:
    """The text of such a file, without the space around it; None if it cannot be read."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
