"""Turn an Airflow connection of type ``kafka`` into a :class:`KafkaConnection`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.kafka.hooks.base import KafkaBaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from kafka_rescale.core.errors import InvalidInput

if TYPE_CHECKING:
    from kafka_rescale.kafka.client.connection import KafkaConnection

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
    :raises InvalidInput: There is no ``bootstrap.servers``, there is a callback, which a Spark job could not
        receive, or a file can't be read.
    """
    from kafka_rescale.kafka.client.connection import KafkaConnection

    logging.getLogger("kafka").setLevel(logging.WARNING)  # kafka-python logs every connection at INFO
    for key, value in extra.items():
        if any(word in key for word in SECRET_WORDS):
            mask_secret(str(value))
    return KafkaConnection.read(extra, f"Airflow connection {conn_id!r}")


def missing(conn_id: str) -> InvalidInput:
    """Return the error for a connection that doesn't exist."""
    return InvalidInput(
        f"Airflow connection {conn_id!r}",
        found="no such connection",
        expected='a connection of type kafka whose extra is {"bootstrap.servers": "…"}',
        remedy=f"Add it in Admin > Connections, or set AIRFLOW_CONN_{conn_id.upper()} to its JSON.",
    )
