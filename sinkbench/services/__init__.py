"""Clients of Kafka, Kafka Connect and its metrics. They convert exceptions, and know no trials, sinks or plans."""
