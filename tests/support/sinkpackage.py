"""A package that brings a sink, as pip would have installed it."""

from pathlib import Path


def install(folder: Path, package: str, **sinks: str) -> None:
    """Puts the metadata of `package` into a folder of sys.path: each sink by name, as `module:object`."""
    metadata = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in sinks.items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[sinkbench.sinks]", *lines, ""]))
