"""Where a connector's configuration does not write to the trial's index. Pure."""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl

from sinkbench.analysis.connectors import Misfit, Offered
from sinkbench.sinks.elasticsearch.service import INDEX
from sinkbench.stack import Endpoint

_URL, _ALIAS = "camel.sink.url", "${env:ELASTICSEARCH_INDEX}"
# Of Camel, of ours, and of vendors' connectors: without theirs, these write to an index that is named after the topic.
_NAMES = re.compile(r"camel\..*\.indexName|index|topic\.index\.map|topic\.to\.external\.resource\.mapping")


def misfits(config: Mapping[str, str], load: Offered, endpoint: Endpoint | None) -> Iterator[Misfit]:
    # The index of a trial is named after its topic, too; Camel replaces {{topics}} itself.
    own = ("", _ALIAS, "{{topics}}", "${topic}", INDEX if endpoint is None else endpoint.options.get("index", INDEX))
    places = [(_URL, value) for name, value in parse_qsl(config.get(_URL, "").partition("?")[2]) if name == "indexName"]
    for key, name in [*places, *((key, value) for key, value in config.items() if _NAMES.fullmatch(key))]:
        if name not in own:
            fix = f"name {_ALIAS}" if key == "index" or key.startswith("camel.") else "take it out"
            yield key, f"the documents would go into {name}, not into the trial's own index; {fix}"
