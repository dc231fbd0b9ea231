"""Elasticsearch as a sink: one index per trial, behind the alias that connector files write to."""

from sinkbench.sinks.elasticsearch.configs import misfits
from sinkbench.sinks.elasticsearch.documents import ExistingIndex
from sinkbench.sinks.elasticsearch.index import SETTABLE, propose_index
from sinkbench.sinks.elasticsearch.nodes import CHECKUP, REJECTED, RULES
from sinkbench.sinks.elasticsearch.service import SERVICE
from sinkbench.sinks.elasticsearch.sink import ElasticsearchSink
from sinkbench.sinks.elasticsearch.writing import Bulk
from sinkbench.sinks.kind import SinkKind

KIND = SinkKind(
    name="elasticsearch",
    services=(SERVICE,),
    open=lambda at, checkout: ElasticsearchSink(at.sinks["elasticsearch"], checkout / "elasticsearch" / "index.json"),
    writers={"bulk": Bulk},
    rules=RULES,
    target_ending=".json",
    settable={"elasticsearch": SETTABLE},
    refuses=("read only",),
    full_disk="guarded",
    rejected=REJECTED,
    clients=("elasticsearch",),
    misfits=misfits,
    propose=propose_index,
    checkup=CHECKUP,
    existing=ExistingIndex,
)
