"""Finds unknown keys of a connector's configuration, given those that Connect lists. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl

from sinkbench.suggest import nearest

# Keys of Kafka's consumer that a plan may vary. Connect says whether the consumer knows a key, but lists none.
_TUNING = (
    *("fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "group.protocol", "isolation.level"),
    *("max.partition.fetch.bytes", "max.poll.interval.ms", "max.poll.records"),
    *("partition.assignment.strategy", "receive.buffer.bytes", "session.timeout.ms"),
)
_SUGGESTED = frozenset(f"consumer.override.{key}" for key in _TUNING)
# Prefixes of keys that Connect does not list: other clients, Hibernate, naming strategies, Camel's registry of beans.
_HANDED_ON = (
    "producer.override.",
    "admin.override.",
    "hibernate.",
    "collection.naming.strategy.",
    "column.naming.strategy.",
    "camel.beans.",
)
# An unknown key with these prefixes prevents Camel's start, so the tasks fail; likewise a property of a bean.
_CHECKED_AT_START = (
    "camel.component.",
    "camel.context.",
    "camel.dataformat.",
    "camel.health.",
    "camel.language.",
    "camel.main.",
)
_BEAN_PROPERTY = re.compile(r"camel\.beans\.[^.]+\..+")
# Parts from which Camel builds the URL, if it is not given whole.
_PARTS_OF_URL = ("camel.sink.endpoint.", "camel.sink.path.")
URL = "camel.sink.url"
"""Camel's endpoint URL. Camel checks the options in its query when the first record comes. With the Bulk API a task
then only logs unknown options and continues.
"""
# Options of each Camel component, by URL scheme.
_OPTIONS = {
    "elasticsearch": (
        *("certificatePath", "clusterName", "connectionTimeout", "disconnect", "documentClass"),
        *("enableDocumentOnlyMode", "enableSSL", "enableSniffer", "from", "hostAddresses", "indexName"),
        *("lazyStartProducer", "maxRetryTimeout", "operation", "scrollKeepAliveMs", "size"),
        *("sniffAfterFailureDelay", "snifferInterval", "socketTimeout", "useScroll", "waitForActiveShards"),
    ),
    "sql": (
        *("allowNamedParameters", "alwaysPopulateStatement", "batch", "dataSource", "lazyStartProducer", "noop"),
        *("outputClass", "outputHeader", "outputType", "parametersCount", "placeholder"),
        *("prepareStatementStrategy", "separator", "useMessageBodyForSql", "usePlaceholder"),
    ),
}
# How a value refers to a bean of Camel's registry.
_BEAN = re.compile(r"#(?:bean:)?([A-Za-z_][\w-]*)(?![\w:-])")
# Only newer workers list the keys of converters.
_CONVERTERS = ("key.converter.", "value.converter.", "header.converter.")
# More similar keys are a key and its misspelling.
_MISSPELT = 0.85


@dataclass(frozen=True)
class CheckedKeys:
    """Unlisted keys: nothing reads the `unread` ones, by reason; something may read the `unconfirmed` ones."""

    unread: dict[str, str]
    unconfirmed: tuple[str, ...]


def beans_named(values: Iterable[str]) -> set[str]:
    """The keys of the beans to which values refer, as `#pool` or `#bean:pool`."""
    return {f"camel.beans.{name}" for value in values for name in _BEAN.findall(value)}


def check_keys(
    keys: Collection[str], listed: Collection[str], overrides: Collection[str], named: Collection[str] = ()
) -> CheckedKeys:
    """Finds unlisted keys; `overrides` are those of the plan, `named` those of beans to which values refer.

    A connector may read undeclared keys. So an unlisted key of its file counts as unread only if it is spelled nearly
    like a listed one, as does a key for a client that lists none.
    """
    open_ended = _HANDED_ON + tuple(each for each in _CONVERTERS if not any(key.startswith(each) for key in listed))
    known = {*listed, *_SUGGESTED}
    unread: dict[str, str] = {}
    unconfirmed = []
    for key in keys:
        if key in listed or key in named or key.startswith(_CHECKED_AT_START) or _BEAN_PROPERTY.fullmatch(key):
            continue
        if key.startswith(_PARTS_OF_URL):
            if URL in keys:
                unread[key] = f"is not read in addition to '{URL}'; set it in that URL"
        elif (key not in overrides or key.startswith(open_ended)) and not _is_misspelt(key, known, open_ended):
            unconfirmed.append(key)
        else:
            near = nearest(key, known - {key})
            meant = f"; did you mean '{near}'?" if near else ""
            unread[key] = f"is known neither to the connector nor to Connect{meant}"
    return CheckedKeys(unread, tuple(unconfirmed))


def check_url(url: str) -> CheckedKeys:
    """Finds unknown options in the query of a `camel.sink.url`, each as `camel.sink.url?option`."""
    options = [name for name, _ in parse_qsl(url.partition("?")[2], keep_blank_values=True)]
    known = _OPTIONS.get(url.partition(":")[0])
    if known is None:
        return CheckedKeys({}, tuple(f"{URL}?{option}" for option in options))
    unread, unconfirmed = {}, []
    for option in options:
        if option in known:
            continue
        if _is_misspelt(option, known, ()):
            unread[f"{URL}?{option}"] = f"is none of Camel's options; did you mean '{nearest(option, known)}'?"
        else:
            unconfirmed.append(f"{URL}?{option}")
    return CheckedKeys(unread, tuple(unconfirmed))


def _is_misspelt(key: str, known: Iterable[str], prefixes: Iterable[str]) -> bool:
    # A common prefix does not make two keys similar.
    common = next(filter(key.startswith, (*prefixes, "consumer.override.")), "")
    names = [name.removeprefix(common).casefold() for name in known if name != key and name.startswith(common)]
    return bool(difflib.get_close_matches(key.removeprefix(common).casefold(), names, n=1, cutoff=_MISSPELT))
