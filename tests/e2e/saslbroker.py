"""A second Kafka broker, made of the stack's own jars, that wants TLS and a password of whoever comes."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization

from sinkbench.stack.tools import find_java
from tests.support.ports import free_ports

__all__ = ["sasl_broker"]

PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=CLIENT://127.0.0.1:{client},INNER://127.0.0.1:{inner},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=CLIENT:SASL_SSL,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=INNER
sasl.enabled.mechanisms=PLAIN
listener.name.client.plain.sasl.jaas.config=\\
  org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
auto.create.topics.enable=false
"""


def _keystore(ca: trustme.CA, path: Path) -> Path:
    issued = ca.issue_cert("127.0.0.1")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), password=None)
    # Kafka reads private keys in this format only.
    pkcs8 = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(pkcs8 + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    return path


@contextlib.contextmanager
def sasl_broker(libs: Path, folder: Path, ca: trustme.CA, user: str, password: str) -> Iterator[str]:
    """Runs the broker in `folder`; yields its bootstrap address. It may not be ready yet."""
    client, inner, controller = free_ports(3)
    properties = folder / "server.properties"
    properties.write_text(
        PROPERTIES.format(
            client=client,
            inner=inner,
            controller=controller,
            user=user,
            password=password,
            keystore=_keystore(ca, folder / "keystore.pem"),
            data=folder / "data",
        )
    )
    java = [str(find_java() / "bin" / "java"), "-Xmx256m", "-cp", f"{libs}/*"]
    with (folder / "broker.log").open("wb") as log:
        subprocess.run(
            [*java, "kafka.tools.StorageTool", "format", "--config", str(properties), "--cluster-id", "test-of-sasl"],
            stdout=log,
            stderr=log,
            check=True,
        )
        process = subprocess.Popen([*java, "kafka.Kafka", str(properties)], stdout=log, stderr=log)
        try:
            yield f"127.0.0.1:{client}"
        finally:
            process.kill()
            process.wait()
