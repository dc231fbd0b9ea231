"""Where a connector's configuration does not write into the trial's table, or not such records. Pure."""

import re
from collections.abc import Iterator, Mapping

from psycopg.conninfo import conninfo_to_dict

from loadgen.forms import is_row
from sinkbench.analysis.connectors import JDBC, Misfit, Offered, value_of
from sinkbench.sinks.jdbcurl import jdbc_url
from sinkbench.stack import Endpoint

# The trial's table is named after its topic. Camel replaces {{topics}} itself.
_OWN_TABLE = re.compile(r'("?public"?\.)?"?(\$\{topic\}|\{\{topics\}\})"?')
_INSERT = re.compile(r"sql:\s*insert\s+into\s+([^\s(?]+)", re.IGNORECASE)


def misfits(config: Mapping[str, str], load: Offered, endpoint: Endpoint | None) -> Iterator[Misfit]:
    places = [(key, config[key]) for key in ("collection.name.format", "table.name.format", "table") if key in config]
    if (into := _INSERT.match(config.get("camel.sink.url", ""))) is not None:
        places.append(("camel.sink.url", into[1]))
    for key, name in places:
        if not _OWN_TABLE.fullmatch(name):
            own = "{{topics}}" if key == "camel.sink.url" else "${topic}"
            yield key, f"the records would go into {name}, not into the trial's own table; name it {own}"
    if (url := jdbc_url(config)) is not None:
        if "public" not in (schemas := url.options.get("currentSchema", "public")).split(","):
            yield "connection.url", f"currentSchema={schemas} leads to other tables than the trial's; name public in it"
        at = {} if endpoint is None else conninfo_to_dict(endpoint.address)
        is_there = url.leads_to(f"{at.get('host')}:{at.get('port') or 5432}")
        if is_there and url.database not in ("${env:POSTGRES_DB}", at.get("dbname")):
            text = f"leads to the database {url.database}; name the stack's, as by ${{env:POSTGRES_DB}}"
            yield "connection.url", text
    if config.get("connector.class", "").endswith(".JdbcSinkConnector"):
        yield from _of_jdbc(config, load)


def _of_jdbc(config: Mapping[str, str], load: Offered) -> Iterator[Misfit]:
    """Yields why a JDBC sink, which stores structs without nested members, cannot store such records, or not all."""
    value, fix = value_of(config, load), "use StringConverter and HoistField, as connectors/postgres/jdbc.json does"
    if value is not None and value.kind != "struct":
        yield "value.converter", f"the sink stores structs with a schema, and would get a {value.kind}; {fix}"
    elif value is not None and value.hoisted is None and not is_row(load.form):
        yield "value.converter", f"the sink stores no nested members, such as bench; {fix}"
    key = "primary.key" if config["connector.class"] == JDBC else "pk"
    by, inserts = config.get(f"{key}.mode", "").lower(), config.get("insert.mode", "insert").lower() == "insert"
    if by == "record_key" and inserts and load.keyless is not None:
        yield f"{key}.mode", f"every record needs a key, but {load.keyless}"
    elif by == "record_value" and value is not None and value.hoisted is not None:
        named = {name.strip() for name in config.get(f"{key}.fields", "").split(",")}
        if lacking := ", ".join(sorted(named - {value.hoisted, ""})):
            yield f"{key}.fields", f"records have no {lacking} beside {value.hoisted}; set {key}.mode to none or kafka"
