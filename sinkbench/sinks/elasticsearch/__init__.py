"""Elasticsearch as a sink: an index a trial, behind the alias that the connector files write to."""

from __future__ import annotations

from sinkbench.analysis.settable import Settable, duration, one_of, whole
from sinkbench.sinks.elasticsearch.propose import propose_index
from sinkbench.sinks.elasticsearch.rules import RULES
from sinkbench.sinks.elasticsearch.service import SERVICE
from sinkbench.sinks.elasticsearch.sink import REJECTED, open_elasticsearch
from sinkbench.sinks.elasticsearch.state import CHECKUP
from sinkbench.sinks.elasticsearch.writer import Bulk
from sinkbench.sinks.kind import GUARDED, SinkKind

__all__ = ["KIND"]

SETTABLE = Settable(
    {
        "index.number_of_shards": whole(1, 1024),
        "index.number_of_replicas": whole(0, 100),
        "index.translog.durability": one_of("request", "async"),
        "index.translog.sync_interval": duration(),
        "index.refresh_interval": duration("-1"),
    },
    # They are part of the trial's own index.
    shared=True,
)
"""What can be set of an index, when it is made."""

KIND = SinkKind(
    name="elasticsearch",
    services=(SERVICE,),
    open=open_elasticsearch,
    writers={"bulk": Bulk},
    ways=("bulk",),
    rules=RULES,
    target_ending=".json",
    settable={"elasticsearch": SETTABLE},
    refuses=("read only",),
    full_disk=GUARDED,
    rejected=REJECTED,
    clients=("elasticsearch",),
    propose=propose_index,
    checkup=CHECKUP,
)
