"""Figures in words, for verdicts and tables alike."""

from __future__ import annotations

__all__ = ["percent"]


def percent(share: float) -> str:
    """0.52 is "52 %", 0.042 is "4.2 %"."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"
