"""Makes a docker-archive with one static program as its only layer: image.py ARCHIVE NAME PROGRAM."""

import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path

archive, name, program = sys.argv[1:]


def add(tar: tarfile.TarFile, path: str, content: bytes, mode: int = 0o644) -> None:
    member = tarfile.TarInfo(path)
    member.size, member.mode = len(content), mode
    tar.addfile(member, io.BytesIO(content))


layer = io.BytesIO()
with tarfile.open(fileobj=layer, mode="w") as tar:
    add(tar, "program", Path(program).read_bytes(), 0o755)
digest = hashlib.sha256(layer.getvalue()).hexdigest()
config = json.dumps(
    {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ["/program"], "User": "65535"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
).encode()
with tarfile.open(archive, "w") as tar:
    add(tar, "config.json", config)
    add(tar, "layer.tar", layer.getvalue())
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    add(tar, "manifest.json", json.dumps(manifest).encode())
