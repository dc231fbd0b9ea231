"""What a trial or a cell takes: connections, CPU time, memory, disk and money."""

from __future__ import annotations

from sinkbench.results.base import Amount, Record, Whole

__all__ = ["Bloat", "Connections", "Cost", "JvmCpu", "Memory", "Pool", "Prices"]


class Connections(Record):
    """The most connections seen at once: those clients opened, and those the database server served."""

    clients_peak: Whole | None = None
    server_peak: Whole | None = None
    server_limit: Whole | None = None
    """How many the server accepts; None where it sets no limit, or it is not known."""
    others: Whole = 0
    """Connections that others opened meanwhile: they cannot be told from the connector's, and both peaks are None."""


class JvmCpu(Record):
    """CPU seconds a million records that a service's JVMs spend on themselves: part of `cpu_seconds_per_million`."""

    compiler: Amount | None = None
    gc: Amount | None = None
    """Garbage collection."""


class Memory(Record):
    """The most memory that a service held in a trial, all workers together, in bytes."""

    resident_bytes: Amount | None = None
    """What its processes held of the machine's memory; what they share is counted once."""
    heap_bytes: Amount | None = None
    """Its JVMs' heaps in use, with garbage that is not collected yet; None of what is no JVM, or does not tell."""


class Bloat(Record):
    """What changes of keys have left in a sink, and what went wrong meanwhile; None is what it does not tell."""

    dead_rows: Whole | None = None
    """Rows that are dead, or documents that are deleted, and still take room: when the connector was gone."""
    deadlocks: Whole | None = None
    rollbacks: Whole | None = None
    """Transactions that were rolled back: what a connector has tried, and may have tried again."""
    bytes_before: Whole | None = None
    """Of the index or table, before the connector was made."""
    bytes_after: Whole | None = None


class Pool(Record):
    """What the clients of a pooler waited for; None is what it did not tell. Of a cell, over its valid trials."""

    mode: str | None = None
    """When a connection of the pool is given back, by the pooler's own word."""
    size: Whole | None = None
    """How many connections to the database a pool may hold."""
    prepared_statements: Whole | None = None
    """How many statements it keeps prepared for its clients on each connection; 0 if it keeps none."""
    most_waiting: Whole | None = None
    """The most clients that were seen waiting for a connection at once."""
    longest_wait_ms: Amount | None = None
    """The longest wait that was seen going on."""
    wait_ms_per_query: Amount | None = None
    """The time that clients waited, divided by the queries; a cell has the median of its trials."""
    wait_ms_per_transaction: Amount | None = None


class Prices(Record):
    """What was paid for a core, for memory and for disk; None has no price, and is in no cost."""

    currency: str
    core_hour: Amount | None = None
    memory_gb_hour: Amount | None = None
    """Of 10^9 bytes, as of a disk."""
    disk_gb_month: Amount | None = None
    kept_months: Amount = 1.0
    """How long a record is kept on the disk."""


class Cost(Record):
    """What a million records of a cell cost, in the currency of the run's prices."""

    per_million: Amount | None = None
    """The sum of the parts that have a price; None if one of these was not measured."""
    cpu: Amount | None = None
    memory: Amount | None = None
    disk: Amount | None = None
