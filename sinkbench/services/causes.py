"""Why a connector's tasks fail: from what a trace or a log says to the keys that it concerns, and what to do. Pure."""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from importlib.resources import files
from string import Template

from sinkbench.analysis.keyed import REFERENCE
from sinkbench.secrets import quoted
from sinkbench.services.connect import ConnectorStatus

LONGEST = 240
# Hibernate's message without a connection. It logs the reason, and suggests settings that change nothing.
_NO_CONNECTION = "Unable to determine Dialect without JDBC metadata"
HIDDEN = "no connection to the database came about; the reason is in the worker's log alone"
# In the order of the columns.
_FAMILIES = re.compile(r"(debezium)|(JdbcSink)|(Elasticsearch|Opensearch)|(camel)")
_VALUE = "value.converter"
# Startup parameters that have another name in a URL.
_IN_URL = {"search_path": "currentSchema"}


def _read_causes() -> Iterator[tuple[re.Pattern[str], str, str, str]]:
    """The pattern, keys, fix and words of every cause in `causes.toml`."""
    table = tomllib.loads(files("sinkbench.services").joinpath("causes.toml").read_text(encoding="utf-8"))
    for cause in table["causes"]:
        keys = Template(cause.get("keys", "")).substitute(table["columns"])
        yield re.compile("|".join(cause["said"])), keys, cause["fix"], cause.get("words", "{0}")


CAUSES = list(_read_causes())

_CLASS = re.compile(r"^(?:[\w$]+\.)+[\w$]+: (?=.)")


def texts_of(trace: str) -> list[str]:
    """The exceptions of a Java stack trace, the innermost first, each as `class: message`, without a batch's rows."""
    lines = [line.removeprefix("Caused by: ") for line in trace.splitlines() if line[:1].strip()]
    return [line.rpartition(" was aborted: ")[2] for line in reversed(lines)]


def explained(said: Iterable[str], config: Mapping[str, str], *, of_key: bool = False) -> str | None:
    """What was said (`of_key`: of records' keys), with the connector file's keys and what to do; None if unknown."""
    texts = list(said)
    for pattern, keys, fix, words in CAUSES:
        for text in texts:
            if (found := pattern.search(text)) is None:
                continue
            parts = [_message(text), *(each or "" for each in found.groups())]
            named = dict.fromkeys(_key(each, parts, config, of_key) for each in keys.split())
            where = ", ".join(filter(None, named))
            return f"{words.format(*parts)}{f' ({where})' if where else ''}: {fix}"
    return None


def _key(spec: str, parts: list[str], config: Mapping[str, str], of_key: bool) -> str:
    """The key that a spec means in this connector file, with the part of its value; "" if it has none."""
    columns, _, part = spec.format(*parts).partition(":")
    names, kind = columns.split("|"), config.get("connector.class", "")
    if kind.startswith(REFERENCE):
        names.reverse()
    elif len(names) > 1 and (family := _FAMILIES.search(kind)) is not None:
        names = [names[(family.lastindex or 1) - 1]]
    name = names[0] if len(names) == 1 else next((each for each in names if each in config), "")
    if "*" in name:
        bare = name[1:] if name.startswith("*") else ""
        name = next((key for key in sorted(config) if fnmatchcase(key, name)), bare)
    if of_key and name.startswith(_VALUE):
        name = f"key{name.removeprefix('value')}"
    part = _IN_URL.get(part, part)
    return f"{name}: {part}" if part and part in str(config.get(name, "")) else name


def failure(status: ConnectorStatus, config: Mapping[str, str], *besides: Callable[[], Iterable[str]]) -> str | None:
    """Why a connector or its tasks FAILED, with the keys of its file that it concerns; None if nothing FAILED. What was
    said `besides`, as in logs, the newest first, is asked for only if the traces do not tell."""
    traces = {trace: texts_of(trace) for trace in status.traces}
    for trace, texts in traces.items():
        if (found := explained(texts, config, of_key="convertKey(" in trace)) is not None:
            return found
    told = [text for trace, texts in traces.items() if _NO_CONNECTION not in trace for text in texts or ["no trace"]]
    for ask in besides if traces else ():
        said = list(ask())
        if (found := explained(said, config)) is not None:
            return found
        told += [text for text in said if "SQLException" in text]
    return _message(next((text for text in told if ": " in text), told[0] if told else HIDDEN)) if traces else None


def _message(text: str) -> str:
    return quoted(_CLASS.sub("", text).removesuffix("Call getNextException to see other errors in the batch."), LONGEST)


_RECORD = re.compile(
    r"(\d{4}-\d\d-\d\d [\d:]{8}\.\d{3})(?: UTC \[\d+\](?: PostgreSQL JDBC Driver| \[unknown\])?)? +([A-Z]+):? +(.*)"
)
# Connect's log context, as `[connector|task-0] `.
_CONTEXT = re.compile(r"\[([^|\]]+)\|[^\]]*\] ")
# The client in PgBouncer's line, and the logger at the end of a worker's.
_AROUND = re.compile(r"^C-0x\w+: \S+ (?:pooler error: )?| \([\w$.]+\)$")


def warnings_in(log: str, connector: str, since: str, *, alone: bool) -> Iterator[str]:
    """What a log of a worker, PgBouncer or PostgreSQL warns of, of this connector, and of none if it is
    `alone`, from `since` on (as 2026-11-26 15:10:23.098, UTC): each before the exceptions behind it."""
    ours = False
    for line in log.splitlines():
        if (found := _RECORD.match(line)) is not None:
            context = _CONTEXT.match(found[3])
            ours = found[1] >= since and found[2] in ("WARN", "WARNING", "ERROR", "FATAL")
            ours &= alone if context is None else context[1] == connector
            line = _AROUND.sub("", _CONTEXT.sub("", found[3], count=1) if context else found[3])
        if ours:
            yield from texts_of(line)
