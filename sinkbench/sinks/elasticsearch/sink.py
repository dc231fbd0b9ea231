"""One Elasticsearch cluster, as trials use it."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elasticsearch import ApiError, BadRequestError, NotFoundError, TransportError
from loadgen.reading import parse_json, read_text
from sinkbench.errors import ReasonCode, StackError, TargetError
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.elasticsearch.client import buckets_of, connect, if_shown
from sinkbench.sinks.elasticsearch.documents import Stored
from sinkbench.sinks.elasticsearch.index import TRANSLOG, compare, settings_of, spread
from sinkbench.sinks.elasticsearch.nodes import Nodes
from sinkbench.sinks.elasticsearch.writing import Writes
from sinkbench.sinks.kind import Capabilities
from sinkbench.sinks.values import Created, SinkSettings
from sinkbench.stack import Endpoint

# In the mappings of an index, and in an ingest pipeline, that sinkbench created; what lacks it is left alone.
MARK = {"made_by": "sinkbench"}
# How often an index is created until its primary shards are spread evenly.
MOST_PLACEMENTS = 4
ALREADY_THERE = "resource_already_exists_exception"


@maps_exceptions(ApiError, TransportError)
class ElasticsearchSink:
    name = "elasticsearch"

    def __init__(self, endpoint: Endpoint, index_file: Path) -> None:
        """`index_file` is the body of `PUT /INDEX`. The endpoint's option `index` is the name that connectors write to;
        `shards` and `replicas`, if given, are those of an index without a file of its own."""
        self._endpoint = endpoint
        self._alias = endpoint.options["index"]
        self._index_file = index_file
        self._client = client = connect(endpoint)
        self.close = client.close
        self._nodes = Nodes(client, self._diverted)
        stored, self._writes = Stored(client, endpoint), Writes(client)
        self.read, self.writes, self.disk_bytes = self._nodes.reading, self._nodes.writes, stored.disk_bytes
        self.capabilities = Capabilities(
            service_settings=self._writes,
            times=stored,
            others=self._nodes,
            replication=self._nodes,
            documents=stored,
            queries=stored,
            changes=stored,
            filling=self._writes,
            refusing=self._writes,
            disk_to_fill=self._writes,
            discarding=self,
        )

    def create(self, target: str, file: Path | None = None) -> Created:
        options = self._endpoint.options if file is None else {}
        file = file or self._index_file
        try:
            # The plan's settings for this cell take precedence.
            asked = spread(parse_json(read_text(file, TargetError)), options, self._writes.given)
            mappings = asked.get("mappings", {})
            body = {**asked, "mappings": {**mappings, "_meta": {**mappings.get("_meta", {}), **MARK}}}
        except (FileNotFoundError, ValueError, AttributeError, TypeError) as error:
            raise TargetError(f"{file}: cannot be used as an index: {error}") from None
        cannot = f"Elasticsearch did not make the index {target} of {file}"
        try:
            before = self._behind_alias()
            self._create_spread(target, body)
            lacking, added = list[str](), list[str]()
            with if_shown():
                found: Any = self._client.indices.get(index=target, flat_settings=True, include_defaults=True)
                lacking, added = compare(asked, found[target])
            if lacking:
                self._client.indices.delete(index=target)
                raise TargetError(f"{cannot}: {'; '.join(lacking)}")
            self._point_alias(target, before)
        except (ApiError, TransportError) as error:
            refused = isinstance(error, BadRequestError) and error.error != ALREADY_THERE
            raise (TargetError if refused else StackError)(f"{cannot}: {error}") from None
        notes = []
        if added:
            notes.append(f"Elasticsearch added to what {file.name} asks for: {', '.join(added)}")
        if self.settings(target, {}).durability[TRANSLOG] == "async":
            notes.append(f"what Elasticsearch has stored may be gone after a crash: {TRANSLOG} is async")
        return Created(notes=tuple(notes))

    def _create_spread(self, target: str, body: dict[str, Any]) -> None:
        """Creates the index, again while primary shards are uneven, as may be just after another index was deleted."""
        for left in reversed(range(MOST_PLACEMENTS)):
            self._client.indices.create(index=target, body=body, wait_for_active_shards="all")
            broken = self._nodes.check(target, {}).broken if left else []
            if [each.code for each in broken] != [ReasonCode.SHARDS_UNEVEN]:
                return
            self._client.indices.delete(index=target)

    def _mappings(self, pattern: str) -> dict[str, dict[str, Any]]:
        """The mappings of each index that a name, an alias or a pattern stands for, by index."""
        try:
            found = self._client.indices.get_mapping(index=pattern)
        except NotFoundError:
            return {}
        return {str(index): described["mappings"] for index, described in found.items()}

    def _behind_alias(self) -> list[str]:
        """Indices behind the connectors' alias. Raises StackError if it is an index, or one is not sinkbench's."""
        behind = self._mappings(self._alias)
        for index, mappings in behind.items():
            if index == self._alias or not _is_marked(mappings):
                raise StackError(
                    f"Elasticsearch: {self._alias} is an index, or the alias of one, that sinkbench has not made: "
                    f"{index}; set elasticsearch.index in the stack file to another name"
                )
        return list(behind)

    def _point_alias(self, target: str, before: list[str]) -> None:
        """Moves the connectors' alias from `before` to `target` alone."""
        # One request: at no moment does the alias stand for two indices, or none.
        self._client.indices.update_aliases(
            actions=[
                *({"remove": {"index": index, "alias": self._alias, "must_exist": False}} for index in before),
                {"add": {"index": target, "alias": self._alias, "is_write_index": True}},
            ]
        )

    def _diverted(self, target: str) -> str | None:
        behind = list(self._mappings(self._alias))
        if behind == [target]:
            return None
        now = f"is {' and '.join(behind)} by now" if behind else "was taken away"
        return f"what the connectors call {self._alias} {now}: another race uses this Elasticsearch; wait for its end"

    def drop(self, target: str) -> None:
        for index, mappings in self._mappings(target).items():
            # A name that stands for another index is a user's alias.
            if index != target or not _is_marked(mappings):
                raise StackError(f"Elasticsearch: sinkbench has not made the index {target}, and does not delete it")
            self._client.indices.delete(index=target, ignore_unavailable=True)
        # The pipeline of an index that is still there cannot be deleted.
        for pipeline in self._pipelines(target):
            self._client.ingest.delete_pipeline(id=pipeline)

    def leftovers(self, prefix: str) -> list[str]:
        marked = {index for index, mappings in self._mappings(f"{prefix}*").items() if _is_marked(mappings)}
        return sorted(marked.union(self._pipelines(f"{prefix}*")))

    def discard(self, target: str) -> None:
        """An ingest pipeline of the target's name drops every document. Raises StackError without such a processor."""
        try:
            self._client.ingest.put_pipeline(id=target, processors=[{"drop": {}}], meta=MARK)
        except BadRequestError as error:
            raise StackError(f"Elasticsearch: it drops no records: {error}; install its module ingest-common") from None
        self._client.indices.put_settings(index=target, settings={"index.default_pipeline": target})

    def _pipelines(self, pattern: str) -> list[str]:
        """sinkbench's ingest pipelines of that name or pattern; none where the cluster does not show them."""
        found: Any = {}
        with if_shown():
            found = self._client.ingest.get_pipeline(id=pattern)
        return [name for name, described in found.items() if _is_marked(described)]

    def offer_default(self) -> None:
        target = f"{self._alias}-by-hand"
        if self._client.indices.exists(index=target):
            self._point_alias(target, self._behind_alias())
        else:
            self.create(target)

    def settle(self, target: str) -> None:
        self._client.indices.refresh(index=target)

    def count(self, target: str) -> int:
        return int(self._client.count(index=target)["count"])

    def sequences(self, target: str, run: str) -> Iterator[npt.NDArray[np.int64]]:
        what = f"all shards of {target} for the audit"
        for buckets in buckets_of(self._client, target, run, ("bench.seq",), what):
            keys = np.array([bucket["key"]["bench.seq"] for bucket in buckets], dtype=np.int64)
            yield np.repeat(keys, [bucket["doc_count"] for bucket in buckets])

    def settings(self, target: str, config: Mapping[str, str]) -> SinkSettings:
        answer: Any = {}
        with suppress(ApiError, TransportError):
            answer = self._client.indices.get_settings(index=target, flat_settings=True, include_defaults=True)
        return settings_of(answer.get(target, {}))

    def connection_limit(self) -> int | None:
        return None


def _is_marked(described: dict[str, Any]) -> bool:
    return bool(described.get("_meta", {}).items() >= MARK.items())
