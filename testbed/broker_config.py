"""The server.properties of a single-node KRaft broker for a small machine, and the options of its JVM."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from kafka_rescale.core.errors import InvalidInput

from testbed.archives.class_archive import archive_in, using
from testbed.broker_security import BrokerSecurity
from testbed.jars import JVM_DIRECTORY, TARGET_DIRECTORY, jars_directory
from testbed.processes import free_ports

ARCHIVES = TARGET_DIRECTORY / "broker"
SMALL_MACHINE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "auto.create.topics.enable": "false",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
}


@dataclass(frozen=True)
class Ports:
    """TCP ports of one broker on 127.0.0.1.

    ``internal`` is the port of the broker's own listener when clients must log in, ``mtls`` the port for clients
    that log in by certificate.
    """

    client: int
    controller: int
    internal: int
    mtls: int = 0

    @classmethod
    def of(cls, directory: Path, client: int | None = None) -> Ports:
        """Return the ports that the directory was used with before; else free ports, kept for later starts."""
        file = directory / "ports.json"
        if file.exists():
            kept = cls(**{"mtls": free_ports(1)[0], **json.loads(file.read_text())})
            if client not in {None, kept.client}:
                raise InvalidInput(
                    f"port {client}",
                    found=f"port {kept.client}, which the broker in {directory} was made with",
                    expected="the same port for as long as it has this directory",
                    remedy=f"Leave the port out, or delete {directory} with all that the broker keeps.",
                )
            return kept
        free, controller, internal, mtls = free_ports(4)
        ports = cls(client=client or free, controller=controller, internal=internal, mtls=mtls)
        file.write_text(json.dumps(asdict(ports)))
        return ports


def cluster_id() -> str:
    """Return a new cluster id in Kafka's form: 22 characters of URL-safe base64, not starting with a dash."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        continue
    return text


def server_properties(
    data_directory: Path,
    ports: Ports,
    sasl_users: Mapping[str, str],
    overrides: Mapping[str, str],
    security: BrokerSecurity | None = None,
) -> dict[str, str]:
    """Return the properties of the broker.

    :param sasl_users: passwords by user name. If there are users, clients log in with SASL_PLAINTEXT / PLAIN,
        while the broker and its controller talk to each other in PLAINTEXT on listeners of their own.
    :param overrides: properties that replace or complete the defaults
    :param security: instead of ``sasl_users``, TLS, SCRAM, client certificates and an authorizer.
    """
    client_protocol = "SASL_SSL" if security else "SASL_PLAINTEXT" if sasl_users else "PLAINTEXT"
    guarded = bool(sasl_users or security)
    brokers = {"CLIENT": ports.client} | ({"INTERNAL": ports.internal} if guarded else {})
    brokers |= {"MTLS": ports.mtls} if security else {}
    listeners = brokers | {"CONTROLLER": ports.controller}
    protocols = {"CLIENT": client_protocol, "MTLS": "SSL", "INTERNAL": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
    properties = SMALL_MACHINE | {
        "log.dirs": str(data_directory),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports.controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "INTERNAL" if guarded else "CLIENT",
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items()),
        "advertised.listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in brokers.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocols[name]}" for name in listeners),
    }
    if sasl_users:
        users = " ".join(f'user_{name}="{password}"' for name, password in sasl_users.items())
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        properties["listener.name.client.sasl.enabled.mechanisms"] = "PLAIN"
        properties["listener.name.client.plain.sasl.jaas.config"] = f"{module} required {users};"
    return properties | (security.properties() if security else {}) | dict(overrides)


def to_properties_file(properties: Mapping[str, str]) -> str:
    """Return the text of a Java properties file."""
    return "".join(f"{key}={value}\n" for key, value in properties.items()).replace("\\", "\\\\")


def jvm_options(heap: str) -> tuple[str, ...]:
    """Return the options of the broker's JVM: a small footprint, and a log of warnings with their time.

    :param heap: ``-Xmx``
    """
    log = {"defaultLogLevel": "warn", "showDateTime": "true", "dateTimeFormat": "yyyy-MM-dd HH:mm:ss.SSS"}
    log_options = (f"-Dorg.slf4j.simpleLogger.{name}={value}" for name, value in log.items())
    return ("-Xms128m", f"-Xmx{heap}", "-XX:+UseSerialGC", "-Xshare:auto", *log_options)


def archive_path() -> Path:
    """Return the path of the archive of this broker's classes. The archive may not exist."""
    return archive_in(ARCHIVES, (JVM_DIRECTORY / "pom.xml").read_bytes(), jars_directory("kafka"))


def quick_start() -> tuple[str, ...]:
    """Return JVM options with which a broker and its tools start quickly; empty without an archive.

    With an archive, a start takes half of the processor time.
    """
    return using(archive_path())
