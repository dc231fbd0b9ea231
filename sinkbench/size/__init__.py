"""From a requirement to a size: brokers by a published formula, pipelines from stored runs. It starts nothing."""
