"""Clients of Kafka, Kafka Connect and its metrics. Their exceptions are converted here; this package knows no trials,
sinks or plans.
"""
