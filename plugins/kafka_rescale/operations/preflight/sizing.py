"""Measures a running generation twice and samples its keys, for a recommendation. It writes nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.cluster import ClusterDescription
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.foreign_key_joins import partitioner_of_topic
from kafka_rescale.core.plan.sizing import Advice, TaskLoad, recommend, weights
from kafka_rescale.core.preflight.counts import follows_target
from kafka_rescale.core.preflight.described import Described
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.describe import describe
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.reading.sampling import sample


def advise(
    application: Application,
    topology: Topology,
    connection: KafkaConnection,
    *,
    seconds: float,
    threads: int | None = None,
) -> tuple[Advice, ...]:
    """Return a recommendation for every topic whose keys decide where state is.

    :param seconds: time between the two readings. It must be longer than ``commit.interval.ms``, because committed
        offsets are read.
    :param threads: number of stream threads that shall get a task; by default the number of group members.
    :raises InvalidInput: the application doesn't exist, or could not be measured.
    """
    admin = ClusterAdmin(connection)
    control = ControlTopic(connection, application.application_id).read()
    before, began = describe(admin, application, topology, control.generations), time.monotonic()
    time.sleep(seconds)
    after = describe(admin, application, topology, control.generations)
    elapsed = time.monotonic() - began
    described = Described(application, topology, application.partitions, control, after)
    names = {topic: described.full_name(topic) for topic in _keyed(topology)}
    present = {topic: name for topic, name in names.items() if name in after.topics}
    if not present:
        raise InvalidInput(
            f"application {described.blue!r}",
            found=f"none of {', '.join(names.values()) or 'the topics before a store'}",
            expected="topics whose keys decide where state is",
            remedy="Correct `application_id` or the connection; an application without state needs no advice: any "
            "count will do.",
        )
    loads = {name: tuple(_loads(before, after, name, elapsed)) for name in present.values()}
    _assert_at_work(described.blue, [load for each in loads.values() for load in each], seconds)
    sampled = sample(connection, admin.begin_offsets(present.values()), admin.end_offsets(present.values()))
    advice = []
    for topic, name in present.items():
        keys = ((s.partition, s.key) for s in sampled.samples if s.topic == name and s.key is not None)
        declared = partitioner_named(_partitioner(application, topology, topic), topic)
        wanted = threads or len(after.group.members)
        found = recommend(name, loads[name], weights(keys, loads[name]), declared, threads=wanted)
        advice.append(replace(found, follows=follows_target(described, topic)))
    return tuple(advice)


def _assert_at_work(blue: str, loads: Sequence[TaskLoad], seconds: float) -> None:
    if any(load.arrived and load.lag for load in loads) and not any(load.processed for load in loads):
        raise InvalidInput(
            f"application {blue!r}",
            found=f"records that have come in, and none committed as processed within {seconds:.0f} s",
            expected="an application at work: what a task can process is measured",
            remedy="Start it, or measure for longer than its `commit.interval.ms` (`--seconds`).",
        )


def _keyed(topology: Topology) -> dict[str, None]:
    stateful = (s for s in topology.subtopologies if s.is_stateful)
    return dict.fromkeys(topic for s in stateful for topic in topology.own_sources(s))


def _partitioner(application: Application, topology: Topology, topic: str) -> str:
    if topic in topology.repartitions:
        return partitioner_of_topic(application, topology, topic)
    return application.input_named(topic).partitioner


def _loads(before: ClusterDescription, after: ClusterDescription, name: str, seconds: float) -> Iterator[TaskLoad]:
    for partition in range(after.topics[name].partitions):
        at = (name, partition)
        begin = after.begins.get(at, 0)
        first, last = before.ends.get(at, begin), after.ends.get(at, begin)
        done, by_now = before.committed.get(at, begin), after.committed.get(at, begin)
        yield TaskLoad(
            partition=partition,
            arrived=max(0, last - first) / seconds,
            processed=max(0, by_now - done) / seconds,
            lag=max(0, last - by_now),
        )
