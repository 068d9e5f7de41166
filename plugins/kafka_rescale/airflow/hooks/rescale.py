"""Turn an Airflow connection of type ``kafka`` into a :class:`KafkaConnection`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.configuration import conf
from airflow.providers.apache.kafka.hooks.base import KafkaBaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from kafka_rescale.core.errors import InvalidInput, Outage

if TYPE_CHECKING:
    from kafka_rescale.kafka.client.connection import KafkaConnection

ALLOWLIST = ("apache_kafka", "callback_allowlist")
"""The option of Airflow's Kafka provider that lists the functions which a connection may name. Here it lists Java
classes as well."""

SECRET_WORDS = ("password", "secret", "token", "sasl.jaas.config", "key.pem", "oauthbearer.config")


class KafkaRescaleHook(KafkaBaseHook):
    """
    Turn an Airflow connection of the provider's type ``kafka`` into the connection that this project uses.

    :param kafka_config_id: id of the Airflow connection; its extra holds librdkafka properties
    """

    hook_name = "Kafka Rescale"

    def __init__(self, *, kafka_config_id: str = KafkaBaseHook.default_conn_name) -> None:
        super().__init__(kafka_config_id)

    def connection(self) -> KafkaConnection:
        """Return the connection. This is for tasks, which may look it up synchronously."""
        try:
            extra = self.get_connection(self.kafka_config_id).extra_dejson
        except AirflowNotFoundException as error:
            raise missing(self.kafka_config_id) from error
        return kafka_connection(extra, self.kafka_config_id)

    async def aconnection(self) -> KafkaConnection:
        """Return the connection. This is for triggers: a synchronous look-up would block their event loop."""
        try:
            extra = (await self.aget_connection(self.kafka_config_id)).extra_dejson
        except AirflowNotFoundException as error:
            raise missing(self.kafka_config_id) from error
        return kafka_connection(extra, self.kafka_config_id)


def kafka_connection(extra: Mapping[str, Any], conn_id: str) -> KafkaConnection:
    """Return the connection that an extra describes. From now on, Airflow masks its secrets in every log.

    :param extra: The extra of an Airflow connection.
    :param conn_id: The id of that connection, for the messages.
    :raises InvalidInput: There is no ``bootstrap.servers``, there is a callback or a class that is not allowed, or
        a file can't be read.
    """
    from kafka_rescale.kafka.client.connection import KafkaConnection
    from kafka_rescale.kafka.client.library_logs import quieten_kafka_python

    quieten_kafka_python()
    for key, value in extra.items():
        if any(word in key for word in SECRET_WORDS):
            mask_secret(str(value))
    what = f"Airflow connection {conn_id!r}"
    refuse_unlisted(extra, what)
    return KafkaConnection.read(extra, what)


def refuse_unlisted(extra: Mapping[str, Any], what: str) -> None:
    """Refuse what Airflow's own Kafka hook would not call: a function (``oauth_cb``) that is not listed.

    The same list holds for a Java class (``sasl.login.callback.handler.class``). A person who may edit connections
    must not be able to run any code by that.

    :param what: the connection, for the message.
    :raises InvalidInput: the connection names a function that Airflow's configuration does not list, or a Java
        class that it does not list and that is none of the known ones.
    """
    from kafka_rescale.kafka.client.signed_token import CALLBACK, HANDLER, KNOWN_HANDLERS

    section, option = ALLOWLIST
    allowed = [name.strip() for name in conf.get(section, option, fallback="").split(",") if name.strip()]
    listed, others = ", ".join(allowed) or "nothing", ", ".join(KNOWN_HANDLERS)
    for key, known, expected in (
        (CALLBACK, (), f"a function in [{section}] {option}, which has {listed}"),
        (HANDLER, KNOWN_HANDLERS, f"a class in [{section}] {option}, which has {listed}, or one of {others}"),
    ):
        named = extra.get(key)
        if named is not None and named not in allowed and named not in known:
            raise InvalidInput(
                f"{what}, {key}",
                found=f"{named!r}",
                expected=expected,
                remedy="Add it there in Airflow's configuration, for workers, triggerer and API server, if you "
                "trust it.",
            )


class ConnectionMissing(Outage):
    """Airflow does not find a connection.

    It says the same of a connection that doesn't exist, and of an API server or a store of secrets that is away
    for a moment. So this is an outage: a task that begins or ends a pause is tried again.
    """


def missing(conn_id: str) -> ConnectionMissing:
    """Return the error for a connection that Airflow does not find."""
    return ConnectionMissing(
        f"Airflow connection {conn_id!r}",
        found="no such connection, or one that Airflow can't look up at the moment",
        expected='a connection of type kafka whose extra is {"bootstrap.servers": "…"}',
        remedy=f"Add it in Admin > Connections, or set AIRFLOW_CONN_{conn_id.upper()} to its JSON.",
    )
