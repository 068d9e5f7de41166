"""The settings of a connection, translated for Java clients and for kafka-python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.kafka.client.oauth_token import OAUTHBEARER
from kafka_rescale.kafka.client.sasl_settings import java_sasl, kafka_python_sasl, wrong_mechanism
from kafka_rescale.kafka.client.signed_token import JAVA_OF_SIGNED, is_signed

UNNAMED = "Kafka connection"
"""The connection in messages, where it is not known which one it is."""

# The librdkafka settings that a shared connection may have, by what they mean here.
OWNED_KEYS = frozenset({
    "acks", "auto.commit.enable", "auto.commit.interval.ms", "auto.offset.reset", "delivery.timeout.ms",
    "enable.auto.commit", "enable.auto.offset.store", "enable.idempotence", "enable.partition.eof", "error_cb",
    "group.id", "group.instance.id", "group.protocol", "isolation.level", "log_cb", "max.in.flight",
    "max.in.flight.requests.per.connection", "message.send.max.retries", "message.timeout.ms",
    "on_commit", "partition.assignment.strategy", "request.required.acks", "retries", "stats_cb", "throttle_cb",
    "transaction.timeout.ms",
    "transactional.id",
})  # fmt: skip
"""This program sets these itself for each client. It ignores them in a connection, which other programs share."""

TUNING_KEYS = frozenset({
    "allow.auto.create.topics", "api.version.fallback.ms", "api.version.request",
    "api.version.request.timeout.ms", "batch.num.messages", "batch.size", "broker.address.family",
    "broker.address.ttl", "broker.version.fallback", "builtin.features", "check.crcs", "client.dns.lookup",
    "client.id", "client.rack", "compression.codec", "compression.level", "compression.type",
    "connections.max.idle.ms", "debug", "enable.gapless.guarantee", "enable.metrics.push",
    "enable.random.seed", "enable.sparse.connections", "fetch.error.backoff.ms", "fetch.max.bytes",
    "fetch.message.max.bytes", "fetch.min.bytes", "fetch.queue.backoff.ms", "fetch.wait.max.ms",
    "heartbeat.interval.ms", "internal.termination.signal", "linger.ms", "log.connection.close", "log.queue",
    "log.thread.name", "log_level", "max.partition.fetch.bytes", "max.poll.interval.ms",
    "message.copy.max.bytes", "message.max.bytes", "metadata.max.age.ms",
    "metadata.recovery.rebootstrap.trigger.ms", "metadata.recovery.strategy", "partitioner",
    "queue.buffering.backpressure.threshold", "queue.buffering.max.kbytes", "queue.buffering.max.messages",
    "queue.buffering.max.ms", "queued.max.messages.kbytes", "queued.min.messages",
    "receive.message.max.bytes", "reconnect.backoff.jitter.ms", "reconnect.backoff.max.ms",
    "reconnect.backoff.ms", "request.timeout.ms", "retry.backoff.max.ms", "retry.backoff.ms",
    "session.timeout.ms", "socket.blocking.max.ms", "socket.connection.setup.timeout.ms",
    "socket.keepalive.enable", "socket.max.fails", "socket.nagle.disable", "socket.receive.buffer.bytes",
    "socket.send.buffer.bytes", "socket.timeout.ms", "statistics.interval.ms",
    "sticky.partitioning.linger.ms", "topic.blacklist", "topic.metadata.propagation.max.ms",
    "topic.metadata.refresh.fast.cnt", "topic.metadata.refresh.fast.interval.ms",
    "topic.metadata.refresh.interval.ms", "topic.metadata.refresh.sparse",
})  # fmt: skip
"""These tune librdkafka itself and mean nothing to other clients."""

CONNECTION_KEYS = frozenset({
    "bootstrap.servers", "enable.ssl.certificate.verification", "https.ca.location", "metadata.broker.list",
    "oauth_cb", "sasl.mechanism", "sasl.mechanisms", "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config", "sasl.oauthbearer.extensions",
    "sasl.oauthbearer.method", "sasl.oauthbearer.scope", "sasl.oauthbearer.token.endpoint.url", "sasl.password",
    "sasl.username", "security.protocol", "ssl.ca.location", "ssl.certificate.location",
    "ssl.endpoint.identification.algorithm", "ssl.key.location", "ssl.key.password",
})  # fmt: skip
"""These say how to reach the brokers. Every client has settings for that."""

KERBEROS_PREFIX = "sasl.kerberos."
"""Settings of Java and of librdkafka for GSSAPI. Spark's drivers and executors can't be given these."""

_CA = "ssl.ca.location (a PEM file)"
_CERTIFICATE, _KEY = "ssl.certificate.location (a PEM file)", "ssl.key.location (a PEM file)"
_BOTH = "ssl.certificate.location and ssl.key.location (PEM files)"

JAVA_NAMES: Mapping[str, str] = {
    "sasl.jaas.config": "sasl.username and sasl.password",
    "ssl.truststore.location": _CA,
    "ssl.truststore.certificates": _CA,
    "ssl.keystore.location": _BOTH,
    "ssl.keystore.certificate.chain": _CERTIFICATE,
    "ssl.keystore.key": _KEY,
    "ssl.keystore.password": "ssl.key.password",
    **dict.fromkeys(
        (
            "auto.include.jmx.reporter", "bootstrap.controllers", "buffer.memory", "config.providers",
            "default.api.timeout.ms", "exclude.internal.topics", "fetch.max.wait.ms", "group.remote.assignor",
            "interceptor.classes", "key.deserializer", "key.serializer", "max.block.ms", "max.poll.records",
            "max.request.size", "metadata.max.idle.ms", "metric.reporters", "metrics.num.samples",
            "metrics.recording.level", "metrics.sample.window.ms", "partitioner.class",
            "receive.buffer.bytes", "sasl.client.callback.handler.class", "sasl.login.callback.handler.class",
            "sasl.login.class", "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms",
            "sasl.login.refresh.buffer.seconds", "sasl.login.refresh.min.period.seconds",
            "sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter",
            "sasl.login.retry.backoff.max.ms", "sasl.login.retry.backoff.ms", "security.providers",
            "send.buffer.bytes", "socket.connection.setup.timeout.max.ms", "ssl.enabled.protocols",
            "ssl.engine.factory.class", "ssl.keymanager.algorithm", "ssl.keystore.type", "ssl.protocol",
            "ssl.secure.random.implementation", "ssl.trustmanager.algorithm", "ssl.truststore.password",
            "ssl.truststore.type", "value.deserializer", "value.serializer",
        ),
        "",
    ),
}  # fmt: skip
"""Settings that only Java clients know, and the settings that replace them here; empty if no setting does."""


_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def java_settings(config: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for a Java client (Kafka 2.7 or later, for PEM files).

    :param config: librdkafka settings that ``refuse_other_names`` has let pass.
    :raises InvalidInput: the value of a setting has no counterpart, or a file can't be used.
    """
    java = {"bootstrap.servers": config["bootstrap.servers"], "security.protocol": _protocol(config)}
    if java["security.protocol"].startswith("SASL_"):
        java |= java_sasl(config)
    if java["security.protocol"].endswith("SSL"):
        java |= _java_ssl(config)
    return java


def kafka_python_settings(config: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings for a kafka-python client.

    :param config: librdkafka settings that ``refuse_other_names`` has let pass. Settings that matter neither for
        security nor for the address of the brokers are dropped.
    :raises InvalidInput: the value of a setting that matters for security has no counterpart.
    """
    protocol = _protocol(config)
    servers = [server.strip() for server in config["bootstrap.servers"].split(",")]
    settings: dict[str, Any] = {"bootstrap_servers": servers, "security_protocol": protocol}
    if protocol.startswith("SASL_"):
        settings |= kafka_python_sasl(config)
    if protocol.endswith("SSL"):
        _refuse_unverified(config)
        settings["ssl_check_hostname"] = _identification(config) == "https"
        files = {"ssl_cafile": "ssl.ca.location", "ssl_certfile": "ssl.certificate.location"}
        files |= {"ssl_keyfile": "ssl.key.location", "ssl_password": "ssl.key.password"}
        settings |= {name: config[key] for name, key in files.items() if key in config}
    return settings


def refuse_other_names(config: Mapping[str, str]) -> None:
    """Refuse each setting that one of the three clients could not honour, before any client gets it.

    Some settings of librdkafka load native code: ``plugin.library.paths``, ``ssl.engine.location`` and
    ``ssl.providers``. So only settings that are known here may reach librdkafka: a person who may edit an Airflow
    connection must not be able to run code by that.

    :param config: the settings that a person has given. The error quotes no values, because some are passwords.
    :raises InvalidInput: there is a setting of Java clients, of Kerberos, or one that is not known here.
    """
    _refuse_names_of_others(config)
    known = CONNECTION_KEYS | TUNING_KEYS | OWNED_KEYS | JAVA_OF_SIGNED
    unknown = [key for key in config if key not in known]
    if not unknown:
        return
    raise InvalidInput(
        f"{UNNAMED}, settings {', '.join(map(repr, unknown))}",
        found="no setting with the same meaning for librdkafka, Java and kafka-python",
        expected="PLAINTEXT, SSL with PEM files, SASL with PLAIN, SCRAM or OAUTHBEARER (by OIDC or a "
        "function), and librdkafka's tuning",
        remedy="Remove them from the connection, or reach the brokers in one of these ways.",
    )


def _refuse_names_of_others(config: Mapping[str, str]) -> None:
    """Name all settings of Java clients and of Kerberos in one error, with librdkafka's names for them."""
    allowed = JAVA_OF_SIGNED if is_signed(config) else frozenset()
    theirs = [key for key in config if key in JAVA_NAMES and key not in allowed]
    kerberos = [key for key in config if key.startswith(KERBEROS_PREFIX)]
    if not theirs and not kerberos:
        return
    logs_in = config.get("security.protocol", "").upper().startswith("SASL_")
    # Tell first if the mechanism can't be used: to rename its settings would not help.
    refused = wrong_mechanism(config) if logs_in else None
    found = [f"sasl.mechanism {refused.found}"] if refused else []
    found += [f"settings of Kerberos ({', '.join(kerberos)})"] if kerberos else []
    found += [f"settings of Java clients ({', '.join(theirs)})"] if theirs else []
    expected = [f"{refused.expected} as sasl.mechanism"] if refused else []
    expected += [f"librdkafka's settings: {_instead(theirs, config)}"] if theirs else []
    remedy = [refused.remedy] if refused else []
    if any(".location" in JAVA_NAMES[key] for key in theirs):
        remedy += [
            "`keytool -importkeystore` makes a PKCS#12 file from a JKS file, and `openssl pkcs12` makes PEM files "
            "from that."
        ]
    raise InvalidInput(
        UNNAMED,
        found=" and ".join(found),
        expected="; ".join(expected) or "settings of the mechanism that is used",
        remedy=" ".join([*remedy, "Replace these settings, and remove those without a replacement."]),
    )


def _instead(theirs: Sequence[str], config: Mapping[str, str]) -> str:
    names = {**JAVA_NAMES}
    if config.get("sasl.mechanism", config.get("sasl.mechanisms")) == OAUTHBEARER:
        names["sasl.jaas.config"] = "sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret"
    return "; ".join(f"{names[key]} instead of {key}" for key in theirs if names[key]) or "none of these"


def _java_ssl(config: Mapping[str, str]) -> dict[str, str]:
    _refuse_unverified(config)
    identification = _identification(config)
    java = {"ssl.endpoint.identification.algorithm": "" if identification == "none" else identification}
    if "ssl.ca.location" in config:
        java |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": config["ssl.ca.location"]}
    certificate, key = config.get("ssl.certificate.location"), config.get("ssl.key.location")
    if certificate or key:
        java["ssl.keystore.type"] = "PEM"
        if certificate == key and certificate is not None:
            java["ssl.keystore.location"] = certificate
        else:
            # Java wants both in one file, or both as text.
            java["ssl.keystore.certificate.chain"] = _pem("ssl.certificate.location", certificate)
            java["ssl.keystore.key"] = _pem("ssl.key.location", key)
    if "ssl.key.password" in config:
        java["ssl.key.password"] = config["ssl.key.password"]
    return java


def _pem(key: str, location: str | None) -> str:
    what = f"Kafka connection, {key}"
    try:
        text = Path(location or "").read_text()
    except OSError as error:
        found = f"{location}: {error.strerror}" if location else "nothing"
        raise InvalidInput(
            what, found=found, expected="a readable PEM file", remedy="Give certificate and key, both as files."
        ) from None
    if "PRIVATE KEY" in text and "BEGIN PRIVATE KEY" not in text and "BEGIN ENCRYPTED PRIVATE KEY" not in text:
        raise InvalidInput(
            what,
            found=f"{location}: a key in the traditional format",
            expected="a PKCS#8 key, the only one that Java reads",
            remedy="Convert it: openssl pkcs8 -topk8 -in old.pem -out new.pem",
        )
    return text


def _protocol(config: Mapping[str, str]) -> str:
    protocol = config.get("security.protocol", "plaintext").upper()
    if protocol not in _PROTOCOLS:
        raise InvalidInput(
            "Kafka connection, security.protocol",
            found=repr(protocol),
            expected=f"one of {', '.join(_PROTOCOLS)}",
            remedy="Correct it in the connection.",
        )
    return protocol


def _identification(config: Mapping[str, str]) -> str:
    return config.get("ssl.endpoint.identification.algorithm", "https").lower() or "none"


def _refuse_unverified(config: Mapping[str, str]) -> None:
    if config.get("enable.ssl.certificate.verification", "true").lower() != "true":
        raise InvalidInput(
            "Kafka connection, enable.ssl.certificate.verification",
            found="false",
            expected="verified certificates: Java clients always verify them",
            remedy="Give the brokers' CA as ssl.ca.location.",
        )
