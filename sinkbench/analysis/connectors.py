"""Where a connector's configuration does not fit the load of a trial, by the rules of Kafka Connect itself. Pure."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from loadgen.forms import DOCUMENT, Form, has_envelope, has_schema
from sinkbench.analysis.keyed import REFERENCE, keyed_by

JDBC = "io.debezium.connector.jdbc.JdbcSinkConnector"
REFERENCE_BULK, REFERENCE_COPY = (f"{REFERENCE}{name}Connector" for name in ("ElasticsearchBulk", "PostgresCopy"))
Misfit = tuple[str, str]
"""The key of a configuration, and why its value does not fit, with a fix. The key `form` is the plan's."""

_OFFSETS = "consumer.override.auto.offset.reset"
# They read formats other than JSON and text.
_OTHER_FORMAT = re.compile(r".*\.(Avro|Protobuf|JsonSchema|Boolean|Short|Integer|Long|Float|Double)Converter")
_ROUTER = re.compile(r"Router(\$.*)?$|(Extract|Change|Rename|Set)Topic")
# Transforms that leave the value as it is.
_KEEPING = re.compile(r".*\$Key|Filter|InsertHeader|DropHeaders|.*Router|InsertField\$Value")
# Where the record is within what is around it.
_WITHIN = {"payload": "schema", "after": "envelope"}


class Offered(NamedTuple):
    """A pipeline's load: `own` records get a member "bench"; `keyless`: why some lack keys; `drained`: all at once."""

    form: Form = DOCUMENT
    own: bool = False
    keyless: str | None = None
    drained: bool = True


class Value(NamedTuple):
    """What a sink gets: a text, map or struct, in the field `hoisted`, with what is still `around` the record in it."""

    kind: str
    around: frozenset[str]
    hoisted: str | None


def misfits(config: Mapping[str, str], load: Offered) -> Iterator[Misfit]:
    """Yields why a configuration, whose `topics` is a trial's topic, fits no trial, or not such a load."""
    if config.get("topics.regex"):
        yield "topics.regex", "a trial's connector reads one topic by name; take it out"
    if (begin := config.get(_OFFSETS, "").lower()) in ("latest", "none"):
        yield _OFFSETS, f"is {begin}, but the records are in the topic before the connector starts; take it out"
    for name, kind in transforms(config).items():
        if (place := _routed(config, name, kind)) is not None:
            text = f"{kind} sends the records to {place}, not to the trial's own table or index"
            yield f"transforms.{name}.type", f"{text}; take {name} out of transforms"
        part = _WITHIN.get(config.get(f"transforms.{name}.field", "")) if kind == "ExtractField$Value" else None
        if part is not None and part not in _around(load.form):
            text = f"records without {part} have no such member, or lose bench, by which the audit knows them"
            yield f"transforms.{name}.field", f"{text}; take {name} out of transforms, or name a form with {part}"
    for part, what in (("key", "the records' keys, which are plain text"), ("value", "records of JSON text")):
        if _OTHER_FORMAT.fullmatch(converter := config.get(f"{part}.converter", "")):
            yield f"{part}.converter", f"{converter} cannot read {what}; use StringConverter"
    if _is_json(config, "key", schemas=load.own) and load.keyless is None:
        yield "key.converter", "JsonConverter cannot read the records' keys, which are plain text; use StringConverter"
    if (key := keyed_by(config)) is not None and load.keyless is not None:
        yield key, f"every record needs a key, but {load.keyless}"
    elif key is not None and not load.drained:
        yield key, "only the last record of each key stays, so others have no latency; race it under mode: drain"
    yield from _unread(config, load)


def transforms(config: Mapping[str, str]) -> dict[str, str]:
    """The classes of a connector's transforms by name, without their packages, in their order."""
    names = [name.strip() for name in config.get("transforms", "").split(",") if name.strip()]
    return {name: config.get(f"transforms.{name}.type", "").rpartition(".")[2] for name in names}


def _around(form: Form) -> set[str]:
    return {name for name, of in (("schema", has_schema), ("envelope", has_envelope)) if of(form)}


def _is_json(config: Mapping[str, str], part: str, *, schemas: bool) -> bool:
    """Whether a converter reads JSON; with `schemas`, JSON with a schema in each record."""
    on = config.get(f"{part}.converter.schemas.enable", "true").lower() == "true"
    return config.get(f"{part}.converter", "").endswith(".JsonConverter") and (on or not schemas)


def _routed(config: Mapping[str, str], name: str, kind: str) -> str | None:
    """Where a transform sends the records; None if to the trial's topic, or if that depends on a predicate."""
    at = f"transforms.{name}"
    with suppress(re.error):
        if kind == "RegexRouter" and not re.fullmatch(config.get(f"{at}.regex", ""), config["topics"]):
            return None
    if f"{at}.predicate" in config or not (_ROUTER.search(kind) or f"{at}.route.by.field" in config):
        return None
    given = (config.get(f"{at}.{key}") for key in ("replacement", "topic.format", "route.by.field"))
    return next((place for place in given if place), "another topic")


def _unread(config: Mapping[str, str], load: Offered) -> Iterator[Misfit]:
    """Yields why JsonConverter cannot read the records, or the audit would not find them where the sink has them."""
    key, value = "value.converter", value_of(config, load)
    content = config.get(f"{key}.schema.content", "")
    what = "your own records" if load.own else f"form {load.form}"
    if _is_json(config, "value", schemas=True) and not content and (load.own or not has_schema(load.form)):
        why = 'get the third member "bench"; use StringConverter' if load.own else "has no schema; name a form that has"
        text = f'JsonConverter reads objects of "schema" and "payload" alone, and {what} {why}'
        yield f"{key}.schemas.enable", f"{text}, or set this to false"
    elif content and "bench" not in content:
        yield f"{key}.schema.content", "has no member bench, by which the audit knows records; add it"
    elif value is not None:
        unwraps = value.kind == "struct" and value.hoisted is None and config.get("connector.class") == JDBC
        if left := value.around - ({"envelope"} if unwraps else set()):
            text = f"the {' and '.join(sorted(left))} stays around the record, where the audit does not find it"
            yield "form", f"{what}: {text}; name another form, or a pipeline that takes it out"


def value_of(config: Mapping[str, str], load: Offered) -> Value | None:
    """What converter and transforms make of a record's value; None if a part of them is not known here."""
    kind, hoisted, around = "text", None, _around(load.form)
    if _is_json(config, "value", schemas=False):
        kind = "struct" if _is_json(config, "value", schemas=True) else "map"
        if kind == "struct" and "value.converter.schema.content" not in config:
            around.discard("schema")
    elif not config.get("value.converter", "").endswith((".StringConverter", ".ByteArrayConverter")):
        return None
    for name, step in transforms(config).items():
        field = config.get(f"transforms.{name}.field", "")
        if _KEEPING.fullmatch(step):
            continue
        if f"transforms.{name}.predicate" in config:
            return None
        if step == "HoistField$Value":
            hoisted, kind = field, "map" if kind == "map" else "struct"
        elif step == "ExtractField$Value" and field in _WITHIN:
            around.discard(_WITHIN[field])
        elif step == "ExtractNewRecordState" and kind == "struct":
            around.discard("envelope")
        else:
            return None
    return Value(kind, frozenset(around), hoisted)
