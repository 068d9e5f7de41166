"""Which librdkafka settings of a shared connection mean what here."""

from __future__ import annotations

from collections.abc import Mapping

OWNED_KEYS = frozenset({
    "acks", "auto.commit.enable", "auto.commit.interval.ms", "auto.offset.reset", "delivery.timeout.ms",
    "enable.auto.commit", "enable.auto.offset.store", "enable.idempotence", "enable.partition.eof",
    "group.id", "group.instance.id", "group.protocol", "isolation.level", "max.in.flight",
    "max.in.flight.requests.per.connection", "message.send.max.retries", "message.timeout.ms",
    "partition.assignment.strategy", "request.required.acks", "retries", "transaction.timeout.ms",
    "transactional.id",
})  # fmt: skip
"""Decided by this program per client, whatever a connection shared with other programs says."""

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
"""Tune librdkafka itself and mean nothing to another client."""

CONNECTION_KEYS = frozenset({
    "bootstrap.servers", "enable.ssl.certificate.verification", "https.ca.location", "metadata.broker.list",
    "sasl.mechanism", "sasl.mechanisms", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.extensions", "sasl.oauthbearer.method", "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url", "sasl.password", "sasl.username", "security.protocol",
    "ssl.ca.location", "ssl.certificate.location", "ssl.endpoint.identification.algorithm", "ssl.key.location",
    "ssl.key.password",
})  # fmt: skip
"""How to reach the brokers; every client has a word for it."""

KERBEROS_PREFIX = "sasl.kerberos."
"""Java's and librdkafka's settings of GSSAPI, which Spark's drivers and executors can't be given."""

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
"""What only Java clients know (a PKCS#12 file in librdkafka, too), and what stands for it here; empty: nothing."""
