"""The limits of a run: the rates at which Kafka, Connect and each sink handle the same records, each on its own.

A race calls `measure`. `consume` measures Kafka and Connect, `sinklimit` a sink, by plain clients in processes of their
own; `tune`, which is pure, searches for their best settings, and `costs`, which is pure, tells what a measurement took.
`metrics.limit` relates pipelines to the limits. Nothing of a race, of pilots or of a report belongs here.
"""
