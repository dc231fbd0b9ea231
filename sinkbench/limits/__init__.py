"""The limits of a run: the rates at which Kafka, Connect and each sink handle the same records on their own. A race
calls `measure`; `tune` and `costs` are pure. Nothing of a race, of pilots or of a report belongs here."""
