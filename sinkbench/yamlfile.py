"""YAML 1.2 files of users without duplicate or unknown keys, checked by pydantic; mistakes have their lines."""

import io
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError
from ruamel.yaml import YAML, MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.representer import SafeRepresenter

from loadgen.reading import read_text
from sinkbench.errors import UserError
from sinkbench.secrets import quoted, redacted
from sinkbench.suggest import did_you_mean, nearest

Model = TypeVar("Model", bound=BaseModel)
_REPORTED_AT_MOST = 5
_MOST_VALUES = 100_000
# The library needs seconds for a file of this size.
_MOST_BYTES = 1 << 18
_CUSTOM = "sinkbench"
_WORDS: dict[str, str] = tomllib.loads(files("sinkbench").joinpath("mistakes.toml").read_text(encoding="utf-8"))
"""Replacements of pydantic's texts, by its kind of error."""


class Section(BaseModel):
    """A mapping in a user's file: unknown keys, other types, NaN and infinity are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def mistake(text: str, *at: str | int) -> PydanticCustomError:
    """Returns an error for a model's validator to raise. In `text`, "{name}" stands for the dotted name of the wrong
    key; `at` is its path below the value under validation."""
    return PydanticCustomError(_CUSTOM, "{text}", {"text": text, "at": at})


def shown(value: object) -> str:
    """Returns a value for a message: short, on one line, as in YAML, redacted."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return quoted(repr(value) if isinstance(value, str) else str(value), 60)


def to_yaml(content: Mapping[str, object]) -> str:
    """Returns plain values as YAML, in their order, with explicit null."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _Representer
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.allow_unicode = True
    yaml.width = 4096
    text = io.StringIO()
    yaml.dump(content, text)
    return text.getvalue()


class _Representer(SafeRepresenter):
    """Quotes text with unusual characters, some of which YAML reads as line breaks."""

    def represent_str(self, data: str) -> ScalarNode:
        style = None if data.isprintable() else '"'
        node: ScalarNode = self.represent_scalar("tag:yaml.org,2002:str", data, style=style)
        return node


_Representer.add_representer(str, _Representer.represent_str)


class YamlFile:
    """A YAML file: its plain values in `content`, and their lines. Messages call such a file a `kind`, as "plan".

    Raises `error`, with file and line, if the file cannot be read, is not UTF-8 YAML, or is not one mapping."""

    def __init__(self, path: Path, kind: str, error: type[UserError]) -> None:
        self.path = path
        self._kind = kind
        self._error = error
        self._root, content = self._parse(self._read())
        if not isinstance(content, dict):
            # A text is not shown: a wrong file may be that of a password.
            found = "found a text" if isinstance(content, str) else f"found {shown(content)}"
            found = "the file is empty" if content is None else found
            raise error(f"{path}:1: a {kind} must be a mapping of keys to values; {found}")
        self.content: dict[Any, Any] = content

    def line(self, *path: str | int) -> int:
        """Returns the line, from 1, of a key or list item, or of the nearest one around it."""
        node: Any = self._root
        line: int = node.start_mark.line
        for step in path:
            below = dict(_children(node)).get(step if isinstance(node, SequenceNode) else str(step))
            # A step may be no key: pydantic names the kind of a section, too.
            if below is not None:
                line, node = below
        return line + 1

    def where(self, *path: str | int) -> str:
        return f"{self.path}:{self.line(*path)}"

    def as_model(
        self, model: type[Model], content: object = None, context: Mapping[str, object] | None = None
    ) -> Model:
        """Returns the content, or what `content` makes of it, as a model; raises `error` with what `explain` says."""
        try:
            return model.model_validate(self.content if content is None else content, context=context)
        except ValidationError as invalid:
            raise self._error(redacted(self.explain(invalid, model))) from None

    def explain(
        self, invalid: ValidationError, model: type[BaseModel], others: Mapping[str, type[BaseModel]] | None = None
    ) -> str:
        """Returns a line for each of up to five mistakes, in the file's order. `others` are models of other modes."""
        # pydantic also calls a list whose items are all wrong too short, and a key that is not text a wrong value.
        mistakes = [
            each
            for each in invalid.errors()
            if not (each["type"] == "too_short" and each["input"]) and each["loc"][-1:] != ("[key]",)
        ]
        said = (self._explain(each, model, others or {}) for each in mistakes)
        found = sorted({(self.line(*path), text) for path, text in said})
        lines = [f"{self.path}:{line}: {text}" for line, text in found[:_REPORTED_AT_MOST]]
        rest = len(found) - len(lines)
        return "\n".join(lines) + (f"\n(and {rest} more)" if rest else "")

    def _explain(
        self, detail: ErrorDetails, model: type[BaseModel], others: Mapping[str, type[BaseModel]]
    ) -> tuple[tuple[str | int, ...], str]:
        path, kind, context = detail["loc"], detail["type"], detail.get("ctx", {})
        words = [str(step) for step in path if isinstance(step, str)]
        # Lines distinguish a list's entries, so `multiples` is enough for `pipelines.multiples`.
        name = ".".join(words[1:] if len(words) > 1 and isinstance(path[1], int) else words) or self._kind
        section = ".".join(str(step) for step in path[:-1] if isinstance(step, str)) or self._kind
        if kind == _CUSTOM:
            return (*path, *context["at"]), context["text"].replace("{name}", name)
        if kind == "extra_forbidden":
            return path, f"unknown key '{path[-1]}' in {section}{_hint(path, model, others)}"
        if kind == "invalid_key":
            return path, f"unknown key {path[-1]} in {section}; keys are text"
        if kind == "missing":
            return path, f"{section} has no '{path[-1]}', which it needs"
        if kind == "value_error":
            return path, f"{name}: {context['error']}"
        said = _WORDS[kind].format_map(context) if kind in _WORDS else detail["msg"]
        found, near = detail["input"], None
        if kind == "literal_error" and isinstance(found, str):
            near = nearest(found, context["expected"].replace("'", "").replace(" or ", ", ").split(", "))
        hint = f"; did you mean '{near}'?" if near else ""
        return path, f"{name} {said}" + (f", found {shown(found)}" if kind != "too_short" else "") + hint

    def _read(self) -> str:
        path = self.path
        try:
            return read_text(path, self._error, _MOST_BYTES)
        except FileNotFoundError:
            others = [file.name for file in path.parent.glob("*.y*ml")] if path.parent.is_dir() else []
            raise self._error(f"{path}: there is no such {self._kind}{did_you_mean(path.name, others)}") from None

    def _parse(self, text: str) -> tuple[object, object]:
        try:
            yaml = YAML(typ="safe", pure=True)
            root = yaml.compose(text)
            self._check(root)
            return root, None if root is None else yaml.constructor.construct_document(root)
        except MarkedYAMLError as broken:
            mark = broken.problem_mark or broken.context_mark
            said = (broken.problem or broken.context or "cannot be read").splitlines()[0]
            # For a duplicate key the library prints both values, which may be secrets.
            said = said.split('" with value "')[0] + '"' if '" with value "' in said else said
            raise self._error(f"{self.path}:{mark.line + 1 if mark else 1}: not valid YAML: {said}") from None
        # 2026-13-45 is a date to YAML and a ValueError to Python.
        except (YAMLError, ValueError, OverflowError) as broken:
            raise self._error(f"{self.path}: not valid YAML: {' '.join(str(broken).split())}") from None
        except RecursionError:
            raise self._error(f"{self.path}: is nested too deeply for a {self._kind}") from None

    def _check(self, root: object) -> None:
        """Refuses half a surrogate pair, which cannot be printed, and aliases of themselves or of a huge content."""
        left: list[Any] = [root]
        for _ in range(_MOST_VALUES):
            if not left:
                return
            node = left.pop()
            if isinstance(node, ScalarNode) and any("\ud800" <= letter <= "\udfff" for letter in node.value):
                where = f"{self.path}:{node.start_mark.line + 1}"
                raise self._error(f"{where}: the text {ascii(node.value)[:40]} has half a surrogate pair; correct it")
            if isinstance(node, MappingNode):
                left += [each for pair in node.value for each in pair]
            elif isinstance(node, SequenceNode):
                left += node.value
        raise self._error(f"{self.path}: has more than {_MOST_VALUES:,} values, or contains itself by an alias (*)")


def _hint(path: tuple[str | int, ...], model: type[BaseModel], others: Mapping[str, type[BaseModel]]) -> str:
    """The end of a message about an unknown key: the modes that have it, or a similar key."""
    key, section = str(path[-1]), _section(model, path[:-1])
    if section is None:
        return ""
    elsewhere = {mode: _section(other, path[:-1]) for mode, other in others.items()}
    modes = [mode for mode, found in elsewhere.items() if found is not None and key in found.model_fields]
    return f"; only for mode {', '.join(modes)}" if modes else did_you_mean(key, section.model_fields)


def _section(model: type[BaseModel], path: Iterable[str | int]) -> type[BaseModel] | None:
    for step in path:
        if isinstance(step, str):
            field = model.model_fields.get(step)
            below = None if field is None else _model_in(field.annotation)
            if below is None:
                return None
            model = below
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in get_args(annotation) if (found := _model_in(each)) is not None), None)


def _children(node: object) -> Iterator[tuple[str | int, tuple[int, Any]]]:
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if isinstance(key, ScalarNode):
                yield key.value, (key.start_mark.line, value)
    elif isinstance(node, SequenceNode):
        for index, value in enumerate(node.value):
            yield index, (value.start_mark.line, value)
