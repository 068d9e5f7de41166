"""Kafka Streams' own classes write every format in one JVM, and the project reads what they wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_rescale.core.expansion.offset_metadata import OffsetMetadata
from kafka_rescale.core.formats.changelog_formats import format_of
from kafka_rescale.core.formats.record_shapes import fits
from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.core.formats.subscription_wrapper import LeftTable, Subscription, parse, rewritten
from kafka_rescale.core.formats.suppress_buffer import version_of
from kafka_rescale.core.partitioning.partitioners import Murmur2
from py4j.java_collections import ListConverter
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from testbed.jars import require_java
from tests.support.jvm_tests import class_path

pytestmark = pytest.mark.integration

Streams = Callable[..., Any]
KEYS = st.binary(max_size=40)
TIMES = st.integers(0, 1 << 42)
COUNTS = st.integers(1, 200)
LABEL: tuple[tuple[str, bytes | None], ...] = (("v", b"\x03"),)

# The JVM's first calls are slow, and nothing here depends on time.
PROPERTY = settings(deadline=None, max_examples=60)


@pytest.fixture(scope="module")
def gateway() -> Iterator[JavaGateway]:
    """A JVM with Kafka Streams."""
    [py4j] = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    port, token = launch_gateway(
        classpath=f"{py4j}:{class_path()}",
        java_path=require_java(),
        javaopts=["-XX:TieredStopAtLevel=1", "-Xmx128m"],
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    yield gateway
    gateway.shutdown()


@pytest.fixture(scope="module")
def jvm(gateway: JavaGateway) -> Any:
    """The classes of the JVM."""
    return gateway.jvm


@pytest.fixture(scope="module")
def streams(gateway: JavaGateway) -> Streams:
    """A function that calls a method of ``StreamsFormats``."""

    def call(method: str, *arguments: object) -> Any:
        converter, client = ListConverter(), gateway._gateway_client
        converted = [converter.convert(a, client) if isinstance(a, list) else a for a in arguments]
        return getattr(gateway.jvm.StreamsFormats, method)(*converted)

    return call


@PROPERTY
@given(st.integers(-1, 1 << 62), st.dictionaries(st.text(max_size=9), st.integers(-1, 1 << 62), max_size=4))
def test_kafka_streams_reads_the_metadata_of_offsets(jvm: Any, partition_time: int, marks: dict[str, int]) -> None:
    ours = OffsetMetadata(partition_time, marks)
    theirs = jvm.org.apache.kafka.streams.processor.internals.TopicPartitionMetadata.decode(ours.encode())
    assert theirs.partitionTime() == partition_time
    assert {name: theirs.processorMetadata().get(name) for name in marks} == marks
    assert OffsetMetadata.decode(theirs.encode()) == ours


def read(store_type: str, written: Any, value: bytes | None = None, **sample: Any) -> bytes:
    """Return the partitioning key of a record of Kafka Streams, and assert that the record looks like its type."""
    assert fits(format_of(store_type), Sample("t", 0, 0, bytes(written), value=value, **sample))
    return format_of(store_type).partitioning_key(bytes(written))


@PROPERTY
@given(key=KEYS, partitions=COUNTS)
def test_a_key_goes_where_kafka_streams_sends_it(streams: Streams, key: bytes, partitions: int) -> None:
    home = Murmur2().partition(key, partitions)
    assert streams("partition", key, partitions) == home
    assert Murmur2().partition_batch([key], partitions) == [home]


@PROPERTY
@given(key=KEYS, start=TIMES, partitions=COUNTS)
def test_a_windowed_key_goes_where_its_inner_key_goes(
    streams: Streams, key: bytes, start: int, partitions: int
) -> None:
    inner = read("suppress-window", streams("suppressedWindow", key, start))
    assert streams("windowedPartition", key, start, partitions) == Murmur2().partition(inner, partitions)


@PROPERTY
@given(key=KEYS, start=TIMES)
@pytest.mark.parametrize("store_type", ["window", "timestamped-window"])
def test_windows(streams: Streams, store_type: str, key: bytes, start: int) -> None:
    assert read(store_type, streams("window", key, start, 0)) == key


@PROPERTY
@given(key=KEYS, start=TIMES, sequence=st.integers(1, 2**31 - 1))
def test_windows_of_stream_stream_joins(streams: Streams, key: bytes, start: int, sequence: int) -> None:
    assert read("join-window", streams("window", key, start, sequence)) == key


@PROPERTY
@given(key=KEYS, start=TIMES, length=st.integers(0, 10**9))
def test_sessions(streams: Streams, key: bytes, start: int, length: int) -> None:
    assert read("session", streams("session", key, start, start + length)) == key
    assert read("suppress-session", streams("suppressedSession", key, start, start + length)) == key


@PROPERTY
@given(key=KEYS, time=TIMES, left=st.booleans(), values=st.lists(st.binary(max_size=20), min_size=1, max_size=4))
def test_the_shared_store_of_outer_joins(
    streams: Streams, key: bytes, time: int, left: bool, values: list[bytes]
) -> None:
    value = bytes(streams("outerJoinList", values, left))
    assert read("outer-join", streams("outerJoin", key, time, left), value) == key


@PROPERTY
@given(
    foreign=KEYS,
    primary=KEYS,
    hashed=st.booleans(),
    version=st.integers(0, 1),
    instruction=st.integers(0, 3),
    before=COUNTS,
    after=COUNTS,
)
def test_subscriptions_of_foreign_key_joins(
    streams: Streams,
    foreign: bytes,
    primary: bytes,
    hashed: bool,
    version: int,
    instruction: int,
    before: int,
    after: int,
) -> None:
    home = streams("partition", primary, before)
    value = bytes(streams("wrapper", hashed, instruction, primary, version, home))
    assert read("foreign-key-subscription", streams("subscriptionKey", foreign, primary), value) == foreign
    assert parse(value) == Subscription(primary, home if version else None)

    left = LeftTable(partitioner="murmur2", source_partitions=before, target_partitions=after)
    [copied] = rewritten([value], left, where="")

    assert copied is not None
    assert streams("primaryPartition", copied) == (streams("partition", primary, after) if version else -1)
    assert bytes(streams("primaryKey", copied)) == primary
    target = streams("partition", primary, after)
    assert copied == bytes(streams("wrapper", hashed, instruction, primary, version, target))


@PROPERTY
@given(
    key=KEYS,
    start=TIMES,
    prior=st.none() | st.binary(max_size=9),
    old=st.none() | st.binary(max_size=9),
    new=st.none() | st.binary(max_size=9),
    header=st.none() | st.binary(max_size=9),
)
def test_suppress_buffers(
    streams: Streams,
    key: bytes,
    start: int,
    prior: bytes | None,
    old: bytes | None,
    new: bytes | None,
    header: bytes | None,
) -> None:
    value = bytes(streams("suppressedValue", prior, old, new, start, header))
    assert version_of(LABEL, value) == 3
    assert version_of((("v", b"\x02"),), value) in {2, 3}
    assert read("suppress-window", streams("suppressedWindow", key, start), value, headers=LABEL) == key
    assert read("suppress", key, value, headers=LABEL) == key


@PROPERTY
@given(key=KEYS, time=TIMES, sequence=st.integers(0, 2**31 - 1))
def test_why_grace_buffers_are_refused(streams: Streams, key: bytes, time: int, sequence: int) -> None:
    """Kafka Streams' own restore reads the end of the key as the time.

    So it could restore no copy, however faithful.
    """
    logged = bytes(streams("graceBuffer", key, time, sequence))
    assert logged[9:-4] == key
    assert bytes(streams("graceBufferRestored", logged)) != logged
