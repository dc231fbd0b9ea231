"""sinkbench: compares the sinks of a Kafka Connect pipeline."""

__version__ = "0.2.0"
