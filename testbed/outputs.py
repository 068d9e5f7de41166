"""Compare the results of the flights application with the results that follow from its input."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition
from kafka.partitioner.default import murmur2

from testbed.flights import Dataset, Hour, Session

MAX_DIFFERENCES = 20

Results = dict[Any, Any]
Decoder = Callable[[bytes, bytes], tuple[Any, Any]]


@dataclass(frozen=True)
class Comparison:
    """Outcome of a comparison.

    :param differences: at most 20 differences, a line for each; empty if everything is as expected
    :param counts: number of live keys that were compared, by topic
    """

    differences: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def equal(self) -> bool:
        """Whether every key has the expected value and there is no other key."""
        return not self.differences


def compare_with_expected(
    client: Mapping[str, object],
    sent: Dataset,
    *,
    application_id: str | None = None,
    output_prefix: str | None = "",
) -> Comparison:
    """Compare the final values in the changelogs, the output topics or both with the expected values.

    :param client: librdkafka properties with ``bootstrap.servers``
    :param sent: the flights that were sent, ``Progress.read(file).dataset()`` after a replay
    :param application_id: the application whose changelogs are compared; None leaves changelogs out
    :param output_prefix: prefix of the outputs that are compared; None leaves outputs out
    """
    expected: dict[str, Results] = {
        "aircraft-totals": sent.expected_totals(),
        "aircraft-sessions": sent.expected_sessions(),
        "airport-hourly": sent.expected_hourly(),
    }
    result = Comparison()
    for store, values in expected.items():
        if application_id is not None:
            topic = f"{application_id}-{store}-changelog"
            found = read_results(client, topic, CHANGELOG_DECODERS[store], TIMES_BYTES.get(store, 0))
            _compare(result, topic, values, found)
        if output_prefix is not None:
            topic = f"{output_prefix}{store}-output"
            _compare(result, topic, values, read_results(client, topic, OUTPUT_DECODERS[store]))
    return result


def read_results(client: Mapping[str, object], topic: str, decode: Decoder, times_bytes: int = 0) -> Results:
    """Return the decoded values of all live keys of a topic, by decoded key.

    :param times_bytes: see ``read_latest``
    """
    latest = read_latest(client, topic, times_bytes)
    return dict(decode(key, value) for key, value in latest.items() if value is not None)


def read_numbers(client: Mapping[str, object], topic: str) -> list[int]:
    """Return the numbers of all flights in an input topic."""
    with _ReadToEnd(client, topic) as reader:
        return [json.loads(message.value())["number"] for message in reader.messages()]


def read_latest(client: Mapping[str, object], topic: str, times_bytes: int = 0) -> dict[bytes, bytes | None]:
    """Return the last committed value of each key up to the present end of the topic; None if it was deleted.

    If the topic has grown, a key may be in several partitions. Its last value is where the default partitioner
    puts it now. If nothing was written for the key since the growth, its last value is in the highest partition
    that has the key.

    :param times_bytes: number of bytes at the end of every key that say nothing about its partition
    """
    found: dict[bytes, dict[int, bytes | None]] = {}
    partitions = 0
    with _ReadToEnd(client, topic) as reader:
        partitions = reader.partitions
        for message in reader.messages():
            found.setdefault(message.key(), {})[message.partition()] = message.value()
    latest = {}
    for key, values in found.items():
        now = (murmur2(key[: len(key) - times_bytes]) & 0x7FFFFFFF) % partitions
        latest[key] = values[now if now in values else max(values)]
    return latest


class _ReadToEnd:
    """Reads the committed records of a topic, from its beginning to its present end."""

    def __init__(self, client: Mapping[str, object], topic: str) -> None:
        isolated = {"isolation.level": "read_committed", "enable.auto.commit": False, "group.id": "unused"}
        to_the_end = {"enable.partition.eof": True, "fetch.wait.max.ms": 20}
        self._consumer = Consumer({**client, **isolated, **to_the_end})
        description = self._consumer.list_topics(topic, timeout=30).topics[topic]
        if description.error is not None:
            self._consumer.close()
            raise KafkaException(description.error)
        self._topic = topic
        self.partitions = len(description.partitions)

    def __enter__(self) -> _ReadToEnd:
        begin = [TopicPartition(self._topic, number, OFFSET_BEGINNING) for number in range(self.partitions)]
        self._consumer.assign(begin)
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def messages(self) -> Iterator[Message]:
        """Yield all records, in order within each partition."""
        open_partitions = set(range(self.partitions))
        while open_partitions:
            for message in self._consumer.consume(10_000, timeout=0.05):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_partitions.discard(message.partition())
                elif not error.retriable():
                    raise KafkaException(error)


def _compare(result: Comparison, topic: str, expected: Results, found: Results) -> None:
    result.counts[topic] = len(found)
    for key in expected.keys() | found.keys():
        wanted, got = expected.get(key, "nothing"), found.get(key, "nothing")
        if wanted != got and len(result.differences) < MAX_DIFFERENCES:
            result.differences.append(f"{topic} {key}: expected {wanted}, found {got}")


def _total(key: bytes, value: bytes) -> tuple[str, Any]:
    return key.decode(), json.loads(value)


def _session_of_changelog(key: bytes, value: bytes) -> tuple[Session, Any]:
    end, start = struct.unpack(">qq", key[-16:])
    return Session(key[:-16].decode(), start, end), json.loads(value)


def _session_of_output(key: bytes, value: bytes) -> tuple[Session, Any]:
    aircraft, _, times = key.decode().partition("@")
    start, _, end = times.partition("-")
    return Session(aircraft, int(start), int(end)), json.loads(value)


def _hour_of_changelog(key: bytes, value: bytes) -> tuple[Hour, int]:
    start, _sequence = struct.unpack(">qi", key[-12:])
    return Hour(key[:-12].decode(), start), int.from_bytes(value, "big", signed=True)


def _hour_of_output(key: bytes, value: bytes) -> tuple[Hour, int]:
    airport, _, start = key.decode().partition("@")
    return Hour(airport, int(start)), int(value)


TIMES_BYTES = {"aircraft-sessions": 16, "airport-hourly": 12}
"""How many bytes of the keys in changelogs are times, by store."""

CHANGELOG_DECODERS: dict[str, Decoder] = {
    "aircraft-totals": _total,
    "aircraft-sessions": _session_of_changelog,
    "airport-hourly": _hour_of_changelog,
}
OUTPUT_DECODERS: dict[str, Decoder] = {
    "aircraft-totals": _total,
    "aircraft-sessions": _session_of_output,
    "airport-hourly": _hour_of_output,
}
