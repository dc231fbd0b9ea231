"""sinkbench: compares the sinks of a Kafka Connect pipeline."""

__version__ = "0.1.0"
