"""The brokers refuse a record of a pipeline: the error names its input offset, the topic, config and remedy."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.pipeline import STRING, StreamsBuilder
from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.spark.processing.task_work import TaskLimits

from testbed.broker import EmbeddedBroker
from tests.support.processing.counted import Counted

pytestmark = pytest.mark.integration

DAY = 86_400_000
UNLIMITED = str(2**63 - 1)
ANYTHING = {
    "message.timestamp.before.max.ms": UNLIMITED,
    "message.timestamp.after.max.ms": UNLIMITED,
    "max.message.bytes": "10000000",
}
TIMES = "message.timestamp.difference.max.ms where the brokers know it, to " + UNLIMITED


def kept() -> SubTopology:
    builder = StreamsBuilder()
    read = builder.stream("left", "right", key=STRING, value=STRING)
    read.group_by_key().reduce(lambda _, value: value, store="kept").to_stream().to("out")
    return builder.build().sub_topologies()[0]


@dataclass(frozen=True)
class Case:
    """A record that a config of the changelog or of the sink refuses, and the error for it."""

    limited: str
    limits: dict[str, str]
    found: str
    expected: str
    remedy: str
    enough: str = UNLIMITED
    size: int = 10
    age_ms: int = 0
    settings: dict[str, Any] = field(default_factory=dict)


TOO_LARGE = Case(
    "kept",
    {"max.message.bytes": "1048588"},
    "a record of 2000077 bytes without compression",
    "at most max.message.bytes of {topic}, 1048588",
    "Set max.message.bytes=2000077 or more on {topic} and run again.",
    "2000077",
    size=2_000_000,
)
CASES = {
    "too large for the changelog": TOO_LARGE,
    "too large, and some fit compressed": TOO_LARGE,
    "too large for the sink": Case(
        "out",
        {"max.message.bytes": "1048588"},
        "a record of 2000077 bytes without compression",
        "at most max.message.bytes of {topic}, 1048588",
        "Set max.message.bytes=2000077 or more on {topic} and run again.",
        "2000077",
        size=2_000_000,
    ),
    "too old": Case(
        "kept",
        {"message.timestamp.before.max.ms": str(2 * DAY)},
        "timestamp {at}, which brokers refuse when the record is written again",
        "one within message.timestamp.before.max.ms of {topic}",
        f"Set message.timestamp.before.max.ms, and {TIMES} on {{topic}} and run again.",
        age_ms=3 * DAY,
    ),
    "too far ahead": Case(
        "kept",
        {"message.timestamp.after.max.ms": str(DAY)},
        "timestamp {at}, which brokers refuse when the record is written again",
        "one within message.timestamp.after.max.ms of {topic}",
        f"Set message.timestamp.after.max.ms, and {TIMES} on {{topic}} and run again.",
        age_ms=-3 * DAY,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_message_says_which_record_and_with_its_remedy_the_run_goes_on(
    broker: EmbeddedBroker, unique: str, tmp_path: Path, name: str
) -> None:
    case, now = CASES[name], now_ms()
    compression = {"compression.type": "gzip"} if "compressed" in name else {}
    connection = KafkaConnection({**broker.client_config(), **compression})
    counted = Counted(connection, unique, tmp_path, partitions=1, made=kept)
    counted.create()
    for topic in (*counted.names.values(), *counted.changelogs.values()):
        counted.admin.alter_configs(topic, ANYTHING)
    limited = {**counted.changelogs, **counted.names}[case.limited]
    counted.admin.alter_configs(limited, case.limits)
    values = [b"v%d" % i for i in range(30)]
    if compression:
        # The brokers accept this one. The refused record comes later.
        values[3] = bytes(b"z" * 1_500_000)
    at = now - case.age_ms
    bad = chance(case.size)
    producer = Producer(connection.client(**{"message.max.bytes": 10_000_000}))
    for i, value in enumerate([*values[:20], bad, *values[20:]]):
        time = at if i == 20 else now
        producer.produce(counted.names["left"], value, b"k%02d" % i, 0, timestamp=time)
    assert producer.flush(30) == 0
    with pytest.raises(UnsafeState) as refused:
        counted.run(TaskLimits())
    error = refused.value
    assert error.what == f"topic {counted.names['left']} partition 0 offset 20", error
    assert error.found == case.found.format(at=at)
    assert error.expected.startswith(case.expected.format(topic=limited))
    assert error.remedy == case.remedy.format(topic=limited)
    assert counted.committed()[counted.names["left"]] == {0: 20}, "what came before it is committed"
    counted.admin.alter_configs(limited, dict.fromkeys(case.limits, case.enough))
    counted.run(TaskLimits())
    assert [key for key, *_ in counted.left()["out-0"]] == [b"k%02d" % i for i in range(31)]


def chance(size: int) -> bytes:
    """Return a random text that no codec can compress."""
    import random

    drawn = random.Random(7)
    return bytes(drawn.randrange(33, 127) for _ in range(size))


def test_a_record_of_1970_is_named(broker: EmbeddedBroker, unique: str, tmp_path: Path) -> None:
    from kafka import KafkaProducer

    connection = KafkaConnection(broker.client_config())
    counted = Counted(connection, unique, tmp_path, partitions=1, made=kept)
    counted.create()
    producer = KafkaProducer(**connection.kafka_python())
    for i in range(30):
        producer.send(
            counted.names["left"], b"v", b"k%02d" % i, partition=0, timestamp_ms=0 if i == 20 else now_ms()
        )
    producer.close()
    for _ in range(2):
        with pytest.raises(UnsafeState) as refused:
            counted.run(TaskLimits())
        assert str(refused.value).startswith(
            f"topic {counted.names['left']} partition 0 offset 20: found timestamp 0, which the client library "
            "would replace by the present time; expected a timestamp of at least 1 ms"
        )
        assert counted.committed()[counted.names["left"]] == {0: 20}, "a person may go on behind it"
