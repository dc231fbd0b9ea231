"""The limits of a run: what Kafka, Connect and each sink could do with the same records, were they alone on the path.

`tune` (the search) and `efficiency` (what the limits say of a pipeline) are pure. The rest measures: `sinklimit` with
`clients`, `worker` and `writers` (plain clients, as processes of their own), and `consume` (Kafka and Connect).
`measure` is what a race calls.
"""
