"""What the figures of a table or a chart mean: a sentence each, and the heading of docs/methods.md that says it all.

The sentences are here because a report is one file that is opened far from its checkout. Each is the first sentence
below its heading; a test keeps it so.
"""

from __future__ import annotations

__all__ = ["COLUMNS", "COMPARED", "MEANINGS", "METHODS", "WHERE", "anchor"]

METHODS = "docs/methods.md"
WHERE = f"What each figure means: {METHODS}"
"""The last line below a table in the terminal."""

MEANINGS = {
    "Records per second": "How many records a cell stores in a second once it is warm: the median of its valid trials.",
    "Warm and steady": "Whether a rate may be quoted: its JVMs had stopped compiling, and it no longer changed.",
    "Interval": "Where the true value lies with 95 % confidence; of fewer than five trials the lowest and the highest.",
    "Ratio": "How many times as fast a cell is as the slowest cell of its run.",
    "Sink or connector": "How much of the difference of two pipelines is the sink's, and how much the connector's.",
    "Course of a trial": "Records stored a second, and the lag, over the seconds of one trial.",
    "Tasks": "The connector's tasks, and in brackets how many that makes for each worker.",
    "Placement": "The number of tasks on each worker.",
    "Records per write": "Stored records divided by the writes that the sink has counted.",
    "Peak connections": "The most connections that were seen open at once.",
    "Waits in the pool": "How long the connector's connections waited for one of the pooler's to the database.",
    "CPU seconds per million records": "The CPU time of each service for a million records, in seconds of one core.",
    "Compiling and garbage collection": "The share of the CPU time that each of the two took.",
    "Peak memory": "The most memory that the services of a cell's path held together at one moment.",
    "Peak heap": "The most of its heap that the JVMs of a service had in use, with garbage that was not collected yet.",
    "Bytes on disk": "What the index or the table takes on the sink's disk after a flush, for each stored record.",
    "Bytes from Kafka": "What the tasks' consumers received from Kafka, for each record.",
    "Bytes through the network": "What each service received and sent, for each record of a drain.",
    "Cost per million records": "What a million records cost by the prices that the user has given.",
    "Lost and duplicated records": "Records that the sink lacks, and rows beyond the first of each record.",
    "Changes of keys": "Whether the sink holds the last version of every key, and none that was deleted.",
    "Dead rows and deadlocks": "What changes of keys have left in the sink, and what went wrong meanwhile.",
    "Equal jobs": "Whether two cells can answer the same questions afterwards.",
    "Durability": "What is on how many nodes when a record counts as stored.",
    "Invalid trials": "Trials whose numbers are not used, each with its reasons.",
    "Verdict": 'Whether everything that is checked held: "ok", or what went wrong.',
    "Offered rate": "The records a second that the load generator is told to send.",
    "Stored rate": "Records stored a second while a constant load is offered, after the warm-up.",
    "Lag": "Records in the topic that are not in the sink yet.",
    "Latency": "The time from when a record was due until it was stored.",
    "Time until found": "The time from when a record was due until a search finds it.",
    "Queries beside a load": "How long queries take while records come, and when none do.",
    "Capacity": "The highest rate whose lag stays bounded.",
    "Scaling law": "How a pipeline's rate grows with its tasks, as a curve with three numbers.",
    "Rebalance": "The time from the request for another number of tasks until all of the new tasks run.",
    "Standstill": "The longest time after that request in which nothing was stored.",
    "Rate before and after": "Records stored a second before the request for other tasks, and after the rebalance.",
    "Ratio to a cold start": "The rate after the rebalance, divided by that of a connector started with as many tasks.",
    "Faults": "What became of a pipeline in which something was broken on purpose.",
    "Recovery": "How long after the moment of a fault records came, at which rate, and with which lag.",
    "Late records": "Records that were stored more than 5 s after they were due, and how late the last of them was.",
    "Truth of the status": "Whether Connect said that a pipeline stood still, and when.",
    "By hand": "What a person had to do about a pipeline that did not recover by itself.",
    "Limit": "The highest rate at which one stage of the path works alone, measured in the same run.",
    "Efficiency": "A cell's rate divided by the limit of its sink.",
    "CPU bound": "The share of its sink's limit that a pipeline cannot exceed with the CPU time that it takes.",
    "Time of one record": "How much of the time of one record each stage of its path takes, in microseconds.",
    "Bottleneck": "What limits a cell, with the figures that show it.",
    "Change": "The rate in run B divided by the rate in run A.",
    "Faster or slower": "Whether a cell differs between two runs by more than chance explains.",
    "Less or more CPU": "Whether a cell takes less or more CPU time for its records, by more than chance explains.",
    "Larger or smaller": "Whether a cell takes more or less memory, or disk, by more than chance explains.",
}
"""What a figure is, by its heading in docs/methods.md and in its order."""

_STAGES = ("all us", "kafka us", "connect us", "kafka, connect", "sink us", "connector us", "most is of the")
_SHOWN_IN = {
    "Records per second": ("records/s", "measured records/s", "A records/s", "B records/s"),
    "Interval": ("low-high", "95 % interval"),
    "Ratio": ("ratio",),
    "Invalid trials": ("why",),
    "Verdict": ("verdict",),
    "Tasks": ("tasks", "tasks (per worker)"),
    "Records per write": ("records/write",),
    "Peak connections": ("peak conns",),
    "CPU seconds per million records": ("CPU s per million records", "A CPU s per million", "B CPU s per million"),
    "Compiling and garbage collection": ("JIT", "GC"),
    "Peak memory": ("peak MB", "MB by service", "A peak MB", "B peak MB"),
    "Peak heap": ("heap MB",),
    "Waits in the pool": ("most waiting", "longest ms", "ms/query", "ms/transaction"),
    "Bytes on disk": ("bytes on disk", "A bytes/record", "B bytes/record"),
    "Bytes from Kafka": ("bytes from Kafka",),
    "Bytes through the network": ("bytes in/out",),
    "Cost per million records": ("per million records", "for cores", "for memory", "for disk"),
    "Lost and duplicated records": ("lost", "dupl.", "twice"),
    "Changes of keys": ("stale keys", "missing keys", "not deleted keys"),
    "Durability": ("stored on", "in Kafka"),
    "Dead rows and deadlocks": ("deadlocks", "rollbacks", "dead rows", "MB before", "MB after"),
    "Offered rate": ("offered records/s",),
    "Stored rate": ("stored records/s",),
    "Lag": ("lag grows/s", "most lag"),
    "Latency": ("latency p50 ms", "p95 ms", "p99 ms", "p99.9 ms"),
    "Time until found": ("found p99 ms",),
    "Capacity": ("capacity records/s",),
    "Rebalance": ("rebalance s",),
    "Standstill": ("standstill s",),
    "Rate before and after": ("before records/s", "after records/s"),
    "Faults": ("dead letters", "conns before/after/left"),
    "Recovery": (
        *("first record s", "still s", "rate as before s", "lag as before s"),
        "records/s before/during/after",
    ),
    "Late records": ("late records", "latest s"),
    "Truth of the status": ("FAILED tasks", "said after s", "stuck s"),
    "By hand": ("by hand",),
    "Ratio to a cold start": ("after/cold",),
    "Scaling law": ("fitted records/s", "one more worker"),
    "Efficiency": ("of limit",),
    "CPU bound": ("CPU bounds it to", "left to gain"),
    "Time of one record": _STAGES,
    "Bottleneck": ("limited by", "evidence", "also found"),
    "Change": ("B/A",),
}

COLUMNS = {column: heading for heading, columns in _SHOWN_IN.items() for column in columns}
"""The heading of each column that has a figure, by the column's own heading in one line."""

COMPARED = {**COLUMNS, "verdict": "Faster or slower"}
"""The same in the table of a comparison, whose verdict is another one."""


def anchor(heading: str) -> str:
    """The end of a heading's address, as GitHub and GitLab make it: `records-per-second`."""
    kept = (letter for letter in heading.lower() if letter.isalnum() or letter in " -_")
    return "".join(kept).replace(" ", "-")
