"""From a requirement to a size: Kafka's brokers by a published formula, pipelines from stored runs. It starts nothing."""
