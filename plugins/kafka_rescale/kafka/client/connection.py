"""One set of librdkafka settings, translated for every client that the project starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from kafka_rescale.core.application.config_files import refuse_difference
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.kafka.client.client_settings import (
    OWNED_KEYS,
    UNNAMED,
    java_settings,
    kafka_python_settings,
    refuse_other_names,
)
from kafka_rescale.kafka.client.failures import ConnectionTrouble
from kafka_rescale.kafka.client.library_logs import LIBRDKAFKA_LOG
from kafka_rescale.kafka.client.settings_files import (
    CONFIG_FILE_VARIABLE,
    CONFIG_VARIABLE,
    ENVIRONMENT_REMEDY,
    EXPECTED_VARIABLE,
    identity_here,
    json_settings,
    of_word,
    require_files,
    settings_in,
    subject_of,
)
from kafka_rescale.kafka.client.signed_token import (
    CALLBACK,
    JAVA_OF_SIGNED,
    is_signed,
    lacks_java_class,
    signed_tokens,
)
from kafka_rescale.kafka.client.waiting import poll_until

CHECK_SECONDS = 8.0

_SHOWN = ("bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.mechanisms")
RESILIENT: Mapping[str, str | int] = {
    # With librdkafka 2.16's default, "rebootstrap", a producer whose only broker restarts never finds its
    # transaction coordinator again: send_offsets_to_transaction(timeout=20) had not returned after 60 s.
    "metadata.recovery.strategy": "none",
    # The default is 10 s. With it, commits went on 8 to 10 s after the broker was back. With 1 s, they went on
    # within 1 s (measured).
    "reconnect.backoff.max.ms": 1_000,
    # Sparse connections are librdkafka's default. With them, an admin request that waits for a broker connects to
    # it again at each change of its state, without any backoff. While a broker was down, this made 8,000 attempts
    # a second and used more than one processor (seen). Without sparse connections, it was one attempt a second,
    # and other clients try less often, too. To find a coordinator then also takes half a second less.
    "enable.sparse.connections": "false",
    # The default is 5 minutes. Only at a refresh does a client that waits for a broker hear that the broker is
    # back, or that another broker leads. If the library has dropped the broker that a commit waits for, the commit
    # goes on only then (decisions/faults.md).
    "topic.metadata.refresh.interval.ms": 3_000,
    # The default is 60 s. A client waits for the answer of a frozen broker for this time.
    "socket.timeout.ms": 10_000,
}


@dataclass(frozen=True, repr=False)
class KafkaConnection:
    """How to reach a cluster. A connection can be pickled, and it never shows a secret when printed.

    :param config: librdkafka keys, verbatim from the extra of an Airflow ``kafka`` connection.
    :raises InvalidInput: ``bootstrap.servers`` is missing, a value is neither a text, a number nor a boolean, or a
        setting is not known to be safe for each client.
    """

    config: Mapping[str, str] = field(hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", {key: _text(key, value) for key, value in self.config.items()})
        if not self.config.get("bootstrap.servers", "").strip():
            raise InvalidInput(
                UNNAMED,
                found="no bootstrap.servers",
                expected='librdkafka settings such as {"bootstrap.servers": "host:9092"}',
                remedy=f"Set them as the extra of the Airflow connection. {ENVIRONMENT_REMEDY}",
            )
        refuse_other_names(self.config)

    @classmethod
    def read(cls, settings: Mapping[str, Any], origin: str) -> KafkaConnection:
        """Return a connection, after checking that the files that it names can be read here.

        :param settings: librdkafka keys and their values.
        :param origin: where the settings were found, for the messages.
        :raises InvalidInput: the settings can't be used, or a file can't be read.
        """
        try:
            connection = cls(settings)
        except InvalidInput as error:
            what = error.what.replace(UNNAMED, origin, 1)
            raise InvalidInput.of(error.complaint.about(what)) from None
        require_files(connection.config, origin)
        return connection

    @classmethod
    def from_environment(cls) -> KafkaConnection:
        """Return the connection that a job was started with.

        Reads the JSON file named by ``KAFKA_RESCALE_KAFKA_CONFIG_FILE``, else the JSON text in
        ``KAFKA_RESCALE_KAFKA_CONFIG``.

        :raises InvalidInput: neither is set, it is not a JSON object, or the file has another cluster or user than
            the task that has started the job.
        """
        file = os.environ.get(CONFIG_FILE_VARIABLE, "")
        if not file:
            return cls.read(json_settings(os.environ.get(CONFIG_VARIABLE, ""), CONFIG_VARIABLE), CONFIG_VARIABLE)
        what = f"{CONFIG_FILE_VARIABLE}={file}"
        settings = settings_in(file, what)
        if expected := os.environ.get(EXPECTED_VARIABLE):
            wanted = of_word(expected)
            refuse_difference(what, identity_here(settings), wanted, "the task's Airflow connection")
        return cls.read(settings, what)

    @property
    def servers(self) -> str:
        """``bootstrap.servers``, for messages."""
        return self.config["bootstrap.servers"]

    @property
    def principal(self) -> str:
        """The user that the brokers see, as far as the settings tell it, for a person who grants ACLs."""
        user = self.config.get("sasl.username", "")
        if user:
            return f"User:{user}"
        client = self.config.get("sasl.oauthbearer.client.id", "")
        if client:
            return f"User:<sub of the tokens of {client}>"
        certificate = self.config.get("ssl.certificate.location", "")
        return (
            f"User:{subject_of(certificate) or f'<subject of {certificate}>'}"
            if certificate
            else "User:<principal of the connection>"
        )

    @property
    def compression(self) -> str:
        """Return the codec that the settings declare for producers; empty if they leave it open."""
        return self.config.get("compression.type", self.config.get("compression.codec", ""))

    def client(self, **overrides: Any) -> dict[str, Any]:
        """Return settings for a confluent-kafka client. librdkafka's own log goes to Python's logging.

        Settings that decide what a client *means* (group, offsets, transactions) come only from the caller, never
        from the connection. The settings in ``RESILIENT`` let a client survive the restart of brokers. A value in
        the connection takes precedence over them.

        :param overrides: settings by their librdkafka names, so mostly ``**{"group.id": ...}``.
        :raises InvalidInput: the function that signs tokens can't be used.
        :raises Outage: the function that signs tokens fails.
        """
        not_shared = OWNED_KEYS | JAVA_OF_SIGNED | {CALLBACK}
        shared: dict[str, Any] = {key: value for key, value in self.config.items() if key not in not_shared}
        if is_signed(self.config):
            tokens = signed_tokens(self.config)
            tokens.token()  # within a client a failure would only show as a timeout
            shared[CALLBACK] = tokens
        return {**RESILIENT, **shared, "logger": LIBRDKAFKA_LOG, **overrides}

    def java(self) -> dict[str, str]:
        """Return the settings for Java clients, so also for Spark's connector (which wants the prefix ``kafka.``).

        :raises InvalidInput: Java clients have no counterpart of a setting's value.
        """
        return java_settings(self.config)

    def kafka_python(self) -> dict[str, Any]:
        """Return the settings for kafka-python's clients.

        :raises InvalidInput: kafka-python has no counterpart of a value that matters for security.
        """
        return kafka_python_settings(self.config)

    def check(self, seconds: float = CHECK_SECONDS) -> None:
        """Return as soon as a broker answers.

        :param seconds: how long to try.
        :raises InvalidInput: credentials or security settings are wrong, or a client can't use a setting.
        :raises Outage: the function that signs tokens fails, or no broker answers in time.
        """
        # Only the role `verify` needs the class that gives Java its tokens. Preflight asks for it there.
        if not lacks_java_class(self.config):
            self.java()
        self.kafka_python()
        trouble = ConnectionTrouble(self.servers)
        try:
            admin = AdminClient(self.client(error_cb=trouble))
        except (KafkaException, TypeError, ValueError) as error:
            raise trouble.unusable(error) from None

        def answers() -> bool:
            try:
                return bool(admin.list_topics(timeout=0.5).brokers)
            except KafkaException:
                admin.poll(0)
                if trouble.refusal is not None:
                    raise InvalidInput.of(trouble.refusal.complaint) from None
                return False

        poll_until(answers, seconds=seconds, otherwise=trouble.outage)

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={self.config[key]!r}" for key in _SHOWN if key in self.config)
        return f"KafkaConnection({shown}, {len(self.config)} settings)"


def _text(key: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise InvalidInput(
        f"{UNNAMED}, setting {key!r}",
        found=f"a {type(value).__name__}",
        expected="a text or a number; for a callback, the name of a function",
        remedy="Remove it, or write it as text: `oauth_cb` as module.function.",
    )
