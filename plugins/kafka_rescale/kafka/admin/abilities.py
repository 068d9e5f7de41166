"""What brokers tell about themselves: the requests they answer (KIP-35) and the features in use (KIP-584).

confluent-kafka has no such call, so this uses kafka-python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka.errors import KafkaError
from kafka.protocol.api_key import ApiKey
from kafka.protocol.metadata import ApiVersionsRequest

from kafka_rescale.core.cluster import Abilities
from kafka_rescale.kafka.admin.each_broker import answers_by_broker
from kafka_rescale.kafka.admin.group_members import asked
from kafka_rescale.kafka.client.connection import KafkaConnection

CLIENT = "kafka-rescale"
NAMES = {each.value: each.name for each in ApiKey}


def read_abilities(connection: KafkaConnection) -> Abilities:
    """Return what the brokers that are up can do. A broker that doesn't answer in time is left out.

    :raises ClusterOutage: no broker can be reached.
    """
    return asked(
        connection, "the requests that brokers know", lambda client: _told(client._manager.run(_ask, client))
    )


async def _ask(client: Any) -> dict[int, Any]:
    # From version 3 on a request names its client, and an answer names features.
    return await answers_by_broker(
        client,
        lambda: ApiVersionsRequest(client_software_name=CLIENT, client_software_version="1", min_version=3),
    )


def _told(answers: Mapping[int, Any]) -> Abilities:
    told = {n: a for n, a in answers.items() if not isinstance(a, KafkaError) and not a.error_code}
    known = {broker: frozenset(NAMES.get(k.api_key, "") for k in a.api_keys) - {""} for broker, a in told.items()}
    # The answer with the highest epoch of the features counts. A broker that has just started may not have read
    # the cluster's features yet.
    newest = max(told.values(), key=_epoch, default=None)
    features = (newest.finalized_features or ()) if newest is not None else ()
    return Abilities(known, {feature.name: feature.max_version_level for feature in features})


def _epoch(answer: Any) -> int:
    return -1 if answer.finalized_features_epoch is None else int(answer.finalized_features_epoch)
