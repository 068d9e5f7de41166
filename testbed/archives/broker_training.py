"""Run a broker that does a little of everything, and archive the classes that it loads."""

from __future__ import annotations

import tempfile
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from testbed.archives.class_archive import make_archive
from testbed.broker import BrokerError, EmbeddedBroker
from testbed.broker_config import archive_path
from testbed.jars import ensure_jars

SECONDS = 60.0
TOPIC = "trained"


def ensure_broker_archive() -> Path | None:
    """Start a broker once, archive the classes that it has loaded, and return the archive.

    :returns: None if this JVM can't make an archive. Brokers then only start more slowly.
    """
    ensure_jars("kafka")
    return make_archive(
        archive_path(), _train, lack="The broker's classes can't be archived, brokers start more slowly"
    )


def _train(options: tuple[str, ...]) -> str:
    try:
        with (
            tempfile.TemporaryDirectory(prefix="kafka-rescale-training-") as directory,
            EmbeddedBroker(directory, heap="512m", options=options) as broker,
        ):
            _work(broker.client_config())
    except (BrokerError, KafkaException, OSError) as error:
        return str(error)
    return ""


def _work(client: dict[str, str]) -> None:
    """Make a topic, write to it in a transaction, and read it as a member of a group."""
    client = {**client, "log_level": "0"}
    admin = AdminClient(client)
    admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(SECONDS)
    producer = Producer({**client, "transactional.id": TOPIC})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(TOPIC, b"value", b"key")
    producer.commit_transaction(SECONDS)
    consumer = Consumer({**client, "group.id": TOPIC, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    consumer.poll(SECONDS)
    consumer.close()


if __name__ == "__main__":  # `python -m testbed.archives.broker_training` prepares a machine beforehand
    print(ensure_broker_archive() or "")
