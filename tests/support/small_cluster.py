"""The small application's topics and records on a real broker, and a picture of everything on the broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_rescale.core.preflight.expected_state import ExpectedState
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.application.load import load_application, topology_of
from kafka_rescale.operations.preflight.preflight import Preflight, preflight

from tests.support.small_application import START_MS, Made, records, topic_configs, with_counts, write


def make(
    client: Mapping[str, str],
    name: str,
    *,
    counts: Mapping[str, int] | None = None,
    configs: Mapping[str, dict[str, str]] | None = None,
    spoilt: Mapping[str, list[Made]] | None = None,
) -> None:
    """Create the application's topics and write its records. Changes use full or short topic names.

    :param counts: partitions by short name, else 4.
    :param configs: replacements by short name.
    :param spoilt: records that replace the sound ones, by short name.
    """
    changed = {f"{name}-{topic}": value for topic, value in (configs or {}).items()}
    created = [
        NewTopic(topic, count, config={**topic_configs(name)[topic], **changed.get(topic, {})})
        for topic, count in with_counts(name, counts or {}).items()
    ]
    create(client, created)
    made = {**records(name), **{f"{name}-{topic}": value for topic, value in (spoilt or {}).items()}}
    produce(client, made)


def create(client: Mapping[str, str], topics: Iterable[NewTopic]) -> None:
    """Create topics and wait until they exist."""
    admin = AdminClient(dict(client))
    for future in admin.create_topics(list(topics), operation_timeout=30).values():
        future.result()


def produce(client: Mapping[str, str], made: Mapping[str, list[Made]]) -> None:
    """Write each record to exactly its partition."""
    producer = Producer({**client, "linger.ms": 5})
    for topic, each in ((t, m) for t, some in made.items() for m in some):
        producer.produce(topic, key=each.key, value=b"v", partition=each.partition, timestamp=each.timestamp_ms)
    assert producer.flush(30) == 0


def run_preflight(
    client: Mapping[str, str], directory: Path, name: str, target: int = 8, **changes: Any
) -> Preflight:
    """Write the application file, load it and run its preflight as an operator would.

    :param changes: fields of the file. ``owner``, ``finished`` and ``expected`` go to the preflight.
    """
    owner = changes.pop("owner", "expand/run-1")
    finished: bool | None = changes.pop("finished", False)
    expected = changes.pop("expected", ExpectedState.EITHER)
    application = load_application(write(directory, name, **changes))
    return preflight(
        application,
        topology_of(application),
        KafkaConnection(dict(client)),
        target=target,
        owner=owner,
        now_ms=START_MS,
        owner_is_finished=lambda _: finished,
        expected=expected,
    )


def picture(client: Mapping[str, str], name: str) -> dict[str, Any]:
    """Everything visible of an application: topics with configs and offsets, groups with their offsets.

    Of other tests' topics it has only the names: retention still deletes their records, and their groups still
    empty.

    :param name: name of the application. The names of its topics and groups contain it.
    """
    connection = KafkaConnection(dict(client))
    admin = ClusterAdmin(connection)
    every = {t for t in admin.list_topics() if not t.startswith("__")}
    topics = {t for t in every if name in t}
    assert topics, f"no topic of {name}: an empty picture compares equal to any other"
    asked = AdminClient(dict(client))  # keep it alive: if the client is collected, its futures never end
    groups = sorted(g.group_id for g in asked.list_consumer_groups().result().valid if name in g.group_id)
    return {
        "names": every,
        "remembered": ControlTopic(connection, name).read(),
        "topics": admin.describe_topics(topics),
        "begins": admin.begin_offsets(topics),
        "ends": admin.end_offsets(topics, read_committed=False),
        "groups": {group: (admin.describe_group(group), admin.committed(group)) for group in groups},
    }
