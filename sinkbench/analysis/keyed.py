"""Whether a connector keeps one row or document a key. Pure."""

from collections.abc import Mapping

# Packages of sinkbench's own connectors, of one design for every sink.
REFERENCE = "sinkbench.reference."


def keyed_by(config: Mapping[str, str]) -> str | None:
    """The key of a configuration by which only the last record of each record's key stays; None if all stay."""
    # A connector file may have numbers and booleans.
    config = {key: str(value) for key, value in config.items()}
    transforms = [f"transforms.{name.strip()}" for name in config.get("transforms", "").split(",")]
    if any(f"{at}.offset.field" in config for at in transforms):
        # Each record has a key of its own.
        return None
    kind = config.get("connector.class", "").rpartition(".")[2]
    if kind == "JdbcSinkConnector":
        mode = next((key for key in ("primary.key.mode", "pk.mode") if key in config), "primary.key.mode")
        upserts = config.get("insert.mode", "").lower() in ("upsert", "update")
        return mode if upserts and config.get(mode, "").lower() == "record_key" else None
    if config.get("connector.class", "").startswith(REFERENCE):
        return "write" if config.get("write") == "upsert" else None
    if kind.lower() in ("elasticsearchsinkconnector", "opensearchsinkconnector"):
        return "key.ignore" if config.get("key.ignore", "false").lower() == "false" else None
    ids = (f"{at}.headers" for at in transforms if config.get(f"{at}.type", "").endswith("HeaderFrom$Key"))
    return next((key for key in ids if "CamelHeader.indexId" in config.get(key, "")), None)
