"""Fills a Kafka topic with unique NOAA-style JSON records and accounts for each. Only `engine` loads Kafka's client."""
