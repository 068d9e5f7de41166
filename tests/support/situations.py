"""A sound application's situation as plain values, and ways to spoil one thing in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.cluster import ClusterDescription, GroupDescription, TopicDescription
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.core.preflight.check import check
from kafka_rescale.core.preflight.deployment import NOT_ASKED
from kafka_rescale.core.preflight.expected_state import ExpectedState
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.topology.describe import parse_describe
from kafka_rescale.core.topology.topology import Topology

from tests.support.small_application import (
    KEYS,
    START_MS,
    Made,
    application,
    declared,
    placed,
    records,
    topic_configs,
    topology_text,
)

Refusals = dict[str, tuple[Callable[[], Situation], list[str]]]
"""By the name of the case: how to make the situation, and the findings that are expected."""

CUSTOMERS_CHANGELOG = "shop-customers-changelog"
NAME = "shop"
TOPICS = {
    name: TopicDescription(name, 4, 1, {"min.insync.replicas": "1", **configs})
    for name, configs in topic_configs(NAME).items()
}
RUNNING = GroupDescription(NAME, "Stable", ("member-1",))
STOPPED = GroupDescription(NAME, "Empty")
INPUTS = [{"topic": "shop-orders", "policy": "unkeyed"}, {"topic": "shop-customers", "policy": "paused"}]
FIXED = [{**i, "policy": "fixed"} for i in INPUTS]
STORES = declared(NAME)["stores"]
SET_BY_PROGRAM = [{"name": "by-customer", "count": "start_command"}]


def samples(**spoilt: list[Sample]) -> tuple[Sample, ...]:
    """Samples of a sound application. ``spoilt`` replaces the samples of its topics."""
    return tuple(s for found in {**sampled(records(NAME)), **spoilt}.values() for s in found)


def sampled(records: Mapping[str, list[Made]]) -> dict[str, list[Sample]]:
    """Return samples of records, per topic."""
    return {
        topic: [Sample(topic, m.partition, offset, m.key, m.timestamp_ms) for offset, m in enumerate(made)]
        for topic, made in records.items()
    }


def all_placed_by(name: str, partitioner: str) -> dict[str, Any]:
    """Return what is declared if every topic and store has one partitioner.

    :param name: name of the application.
    """
    by = {"partitioner": partitioner}
    orders, customers = declared(name)["inputs"]
    return {
        "inputs": [orders, {**customers, **by}],
        "repartitions": [{"name": "by-customer", **by}],
        "stores": [{**store, **by} for store in declared(name)["stores"]],
    }


def unjoined(given: Situation) -> Situation:
    """A topology whose re-keyed orders have no state. Customers and every store have their own sub-topology."""
    orders, join = given.topology.subtopologies
    customers = replace(join, id=2, sources=("shop-customers",), sinks=())
    by_customer = replace(join, sources=("by-customer-repartition",), stores=())
    return replace(given, topology=replace(given.topology, subtopologies=(orders, by_customer, customers)))


def situation(target: int = 8, **changes: Any) -> Situation:
    """A sound application that runs. ``topics`` replaces single topics (None: the topic does not exist)."""
    fields = {k: changes.pop(k) for k in ("inputs", "outputs", "stores", "repartitions", "pacing") if k in changes}
    topics = {k: v for k, v in {**TOPICS, **changes.pop("topics", {})}.items() if v is not None}
    cluster = ClusterDescription("c", brokers=1, topics=topics, group=changes.pop("group", RUNNING))
    cluster = replace(cluster, **changes.pop("cluster", {}))
    topology = parse_describe(topology_text(NAME))
    changes = {"samples": samples(), "now_ms": START_MS, **changes}
    return situation_of(application(NAME, **fields), topology, target, cluster, **changes)


def situation_of(
    declared: Application, topology: Topology, target: int, cluster: ClusterDescription, **read: Any
) -> Situation:
    """What preflight would gather on a cluster with nothing else in it.

    ``read`` adds or replaces what it has read.
    """
    nothing: dict[str, Any] = {
        "control": ControlState(),
        "samples": (),
        "visible": frozenset(),
        "green_records": {},
        "emptied": frozenset(),
        "bridged_ends": {},
        "bridged_ids": {},
        "green_group": GroupDescription(f"{declared.application_id}-g2", "Dead"),
        "compression": "",
        "expected": ExpectedState.EITHER,
        "now_ms": 0,
        "deployment": NOT_ASKED,
        "neighbours": (),
        "unusable": (),
        "chain_run": None,
    }
    return Situation(
        application=declared, topology=topology, target=target, cluster=cluster, **{**nothing, **read}
    )


def found(given: Situation) -> list[str]:
    """All findings as texts."""
    return [str(finding) for finding in check(given)]


def with_counts(**counts: int) -> dict[str, TopicDescription]:
    """Topics with other counts.

    Their names are without the application's prefix, and with underscores for dashes.
    """
    names = {f"{NAME}-{name.replace('_', '-')}": n for name, n in counts.items()}
    return {name: replace(TOPICS[name], partitions=n) for name, n in names.items()}


def with_configs(topic: str, **configs: str) -> dict[str, TopicDescription]:
    """One topic with other configs. Their names have double underscores for dots."""
    dotted = {name.replace("__", "."): value for name, value in configs.items()}
    return {topic: replace(TOPICS[topic], configs={**TOPICS[topic].configs, **dotted})}


def misplaced(topic: str, partitioner: str = "crc32", partitions: int = 4) -> dict[str, list[Sample]]:
    """Samples of a topic as another partitioner would have placed them."""
    made = placed(KEYS, partitions, partitioner)
    return {topic: [Sample(topic, m.partition, i, m.key, START_MS) for i, m in enumerate(made)]}


def journal(target: int, phase: Phase = Phase.WARMING) -> ControlState:
    """A control state with an expansion to ``target``."""
    return ControlState(journal=Journal(plan=situation(target).plan, phase=phase, owner="expand_shop/run-1"))
