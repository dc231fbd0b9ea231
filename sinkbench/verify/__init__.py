"""Whether a topic's records are in a sink that was filled already: it only reads, and measures nothing."""
