"""What has another name since the runs were stored: the one place for it.

The tables are applied to the stored runs as they are read, and to what is expected of them; all else must be as it was.
"""

import csv
import io
from typing import Any

__all__ = ["FIELDS", "NOW", "VALUES", "WORDS", "Renamed"]

FIELDS: dict[str, str] = {}
"""Members of objects in JSON, keys of a plan and columns of an export: what a field was called, with the fields that it
is in before it as far as that is needed, and its name now. As `"recovery.whom": "target"`."""

VALUES: dict[tuple[str, str], str] = {}
"""What a field held as a code, by the field and the code. As `("code", "undead"): "not_deleted"`."""

WORDS: dict[str, str] = {}
"""Words in texts, also in those that a run has kept, in the order in which they are replaced. As `"dearer": "more
CPU"`."""


class Renamed:
    """Stored and expected content by today's names."""

    def __init__(self, fields: dict[str, str], values: dict[tuple[str, str], str], words: dict[str, str]) -> None:
        self._fields = {tuple(old.split(".")): new for old, new in fields.items()}
        self._columns = {path[-1]: new for path, new in self._fields.items()}
        self._values, self._words = values, words

    def content(self, content: Any, path: tuple[str, ...] = ()) -> Any:
        """JSON with today's fields, codes and words."""
        if isinstance(content, dict):
            return {self._field((*path, key)): self.content(value, (*path, key)) for key, value in content.items()}
        if isinstance(content, list):
            return [self.content(value, path) for value in content]
        if isinstance(content, str):
            return self._values.get((path[-1] if path else "", content), None) or self.text(content)
        return content

    def text(self, text: str) -> str:
        for old, new in self._words.items():
            text = text.replace(old, new)
        return text

    def rows(self, text: str) -> str:
        """A table in CSV with today's columns and words."""
        headers, *rows = csv.reader(io.StringIO(text))
        named = [".".join([self._columns.get(first, first), *rest]) for first, *rest in (h.split(".") for h in headers)]
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([named, *([self.text(value) for value in row] for row in rows)])
        return out.getvalue()

    def names(self, text: str) -> str:
        """The list of all fields with today's."""
        return "".join(
            " ".join(self._columns.get(word, word) for word in line.split(" ")) + "\n" for line in text.splitlines()
        )

    def _field(self, path: tuple[str, ...]) -> str:
        for old, new in self._fields.items():
            if path[-len(old) :] == old:
                return new
        return path[-1]


NOW = Renamed(FIELDS, VALUES, WORDS)
