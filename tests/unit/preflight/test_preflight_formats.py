"""Preflight of store types: topic configs and sampled records are compared with the declared type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.cluster import ClusterDescription, GroupDescription, TopicDescription
from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.core.partitioning.partitioners import Murmur2
from kafka_rescale.core.preflight.check import check
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.operations.application.load import topology_of

from tests.support.situations import situation_of
from tests.unit.formats.test_subscription_wrapper import wrapper
from tests.unit.formats.test_suppress_buffer import V3
from tests.unit.plan.test_foreign_key_joins import REGISTRATION, RESPONSE, application

COUNT = 4
T = 1_600_000_000_000
KEYS = [b"key-%d" % i for i in range(24)]
TIME, LATER = T.to_bytes(8, "big"), (T + 60_000).to_bytes(8, "big")
LABEL: tuple[tuple[str, bytes | None], ...] = (("v", b"\x03"),)
BUFFERED = bytes.fromhex(V3[0])


def samples(
    store: str, key_of: Any, value: bytes | None = b"value", headers: tuple[tuple[str, bytes | None], ...] = ()
) -> list[Sample]:
    """Records of a store's changelog, each in the partition of its partitioning key."""
    topic = f"app-{store}-changelog"
    return [
        Sample(topic, Murmur2().partition(key, COUNT), i, key_of(key), T, value, headers)
        for i, key in enumerate(KEYS)
    ]


def subscriptions(topic: str = "app-fk-subscription-store-changelog", shift: int = 0) -> list[Sample]:
    """Subscriptions of primary keys ``left-…`` to the keys.

    They name partitions of a left table with ``COUNT`` partitions.
    """
    made = []
    for i, key in enumerate(KEYS):
        primary = b"left-%d" % i
        value = wrapper(primary, (Murmur2().partition(primary, COUNT) + shift) % COUNT)
        changelog_key = len(key).to_bytes(4, "big") + key + primary
        made.append(
            Sample(
                topic,
                Murmur2().partition(key, COUNT),
                i,
                changelog_key if topic.endswith("-changelog") else key,
                T,
                value,
            )
        )
    return made


def situation(
    sampled: list[Sample], configs: dict[str, dict[str, str]] | None = None, **changes: Any
) -> Situation:
    """The foreign-key join with 4 partitions everywhere, on its way to 8."""
    declared = application(**changes)
    topology = topology_of(declared)
    names = ["left", "right", "out", *(f"app-{t}" for t in topology.repartitions)]
    names += [f"app-{s}-changelog" for s in topology.stores]
    topics = {
        name: TopicDescription(
            name,
            COUNT,
            1,
            {
                "cleanup.policy": "compact" if name.endswith("-changelog") else "delete",
                **(configs or {}).get(name, {}),
            },
            (configs or {}).get(name, {}),
        )
        for name in names
    }
    cluster = ClusterDescription("c", 1, topics, GroupDescription("app", "Stable", ("m",)))
    return situation_of(declared, topology, 8, cluster, samples=tuple(sampled), now_ms=T)


def one_store(name: str, store_type: str, **more: str) -> dict[str, Any]:
    """Fields of an application with one store behind one input."""
    return {
        "inputs": [{"topic": "left", "policy": "paused"}],
        "outputs": [],
        "topology": None,
        "subtopologies": [{"sources": ["left"], "stores": [name]}],
        "stores": [{"name": name, "type": store_type, **more}],
    }


def found(sampled: list[Sample], configs: dict[str, dict[str, str]] | None = None, **changes: Any) -> list[str]:
    """All findings as texts."""
    return [str(finding) for finding in check(situation(sampled, configs, **changes))]


KEY_OF: dict[str, Any] = {
    "key-value": lambda k: k,
    "timestamped-key-value": lambda k: k,
    "versioned": lambda k: k,
    "window": lambda k: k + TIME + bytes(4),
    "timestamped-window": lambda k: k + TIME + bytes(4),
    "join-window": lambda k: k + TIME + b"\0\0\0\x02",
    "session": lambda k: k + LATER + TIME,
    "outer-join": lambda k: TIME + b"\x01" + k,
    "suppress": lambda k: k,
    "suppress-window": lambda k: k + TIME,
    "suppress-session": lambda k: k + LATER + TIME,
}
VALUES = {"outer-join": bytes.fromhex("0100000001000000020176")}


def records_of(store_type: str, store: str = "s") -> list[Sample]:
    """The records that a store of a type writes."""
    if store_type.startswith("suppress"):
        return samples(store, KEY_OF[store_type], BUFFERED, LABEL)
    return samples(store, KEY_OF[store_type], VALUES.get(store_type, b"value"))


def configs_of(store_type: str) -> dict[str, dict[str, str]]:
    """The configs that Kafka Streams gives the changelog of a type."""
    if store_type == "versioned":
        return {"app-s-changelog": {"min.compaction.lag.ms": "90000000"}}
    if store_type == "join-window":
        return {"app-s-changelog": {"cleanup.policy": "delete"}}
    windowed = store_type in {"window", "timestamped-window", "session"}
    return {"app-s-changelog": {"cleanup.policy": "compact,delete"}} if windowed else {}


@pytest.mark.parametrize("store_type", KEY_OF)
def test_a_store_of_every_type_is_taken_as_declared(store_type: str) -> None:
    assert found(records_of(store_type), configs_of(store_type), **one_store("s", store_type)) == []


EQUAL = {frozenset({"key-value", "timestamped-key-value"}), frozenset({"window", "timestamped-window"})}
"""Types whose changelogs look the same and are moved in the same way."""


@pytest.mark.parametrize("real", KEY_OF)
@pytest.mark.parametrize("declared", KEY_OF)
def test_a_store_declared_as_any_other_type_is_refused(declared: str, real: str) -> None:
    refused = bool(found(records_of(real), configs_of(real), **one_store("s", declared)))
    assert refused == (declared != real and frozenset({declared, real}) not in EQUAL)


@pytest.mark.parametrize(
    ("real", "declared", "message"),
    [
        (
            "suppress",
            "timestamped-key-value",
            "topic 'app-s-changelog': found records that only a suppress store writes, first at partition 1, "
            "offset 0; expected records of the timestamped-key-value store s. Declare `type: suppress`.",
        ),
        (
            "join-window",
            "window",
            "topic 'app-s-changelog': found key 0x6b65792d3000000174876e800000000002 at partition 1, offset 0: "
            "sequence number 2, which only stores that keep duplicates have; expected keys of the window store s. "
            "The sampled keys fit join-window: declare the store's real type.",
        ),
        (
            "timestamped-key-value",
            "versioned",
            "topic 'app-s-changelog': found no min.compaction.lag.ms; expected the history retention of the "
            "versioned store s: compaction removes its older versions. Declare the store's real type; if it is "
            "versioned, set min.compaction.lag.ms to its history retention and 24 hours.",
        ),
        (
            "versioned",
            "timestamped-key-value",
            "topic 'app-s-changelog': found min.compaction.lag.ms 90000000, as Kafka Streams sets it for "
            "versioned stores; expected no such config for the timestamped-key-value store s. Declare "
            "`type: versioned`; that is right, too, for a store whose history you keep yourself.",
        ),
    ],
)
def test_the_message_names_the_real_type(real: str, declared: str, message: str) -> None:
    assert message in found(records_of(real), configs_of(real), **one_store("s", declared))


def test_an_outer_join_declared_as_a_key_value_store_is_known_by_its_lists() -> None:
    first, second = found(records_of("outer-join"), **one_store("s", "key-value"))
    assert "found records that only a outer-join store writes" in first
    assert second.endswith("They are where the keys of outer-join stores would be: declare the store's real type.")


class TestProcessorStores:
    """Stores whose key format only the program knows."""

    RECORDS = samples("s", lambda k: k + b"\0\0\0\x07")

    @pytest.mark.parametrize("extractor", ["drop-last-4", "first-5"])
    def test_the_right_extractor_is_taken(self, extractor: str) -> None:
        sampled = [s for s in self.RECORDS if extractor == "drop-last-4" or len(s.key or b"") == 9]
        assert found(sampled, **one_store("s", "processor", partitioning_key=extractor)) == []

    @pytest.mark.parametrize("extractor", ["whole", "drop-last-3", "first-2"])
    def test_a_wrong_one_puts_keys_elsewhere(self, extractor: str) -> None:
        [finding] = found(self.RECORDS, **one_store("s", "processor", partitioning_key=extractor))
        assert "sampled records elsewhere" in finding

    def test_a_key_that_can_not_be_derived_is_refused_with_the_remedy(self) -> None:
        [finding] = found(self.RECORDS, **one_store("s", "key-value"))
        assert finding.endswith(
            "No known partitioner fits. If a processor makes these keys, declare `type: processor` with "
            "`partitioning_key:` (drop-last-N, first-N or module:function), which finds the key of the record "
            "that "
            "an entry was made from; if that can't be derived from the changelog's key, the store can't be moved."
        )


class TestGraceBuffers:
    """The buffer of a stream-table join with a grace period."""

    MESSAGE = "store 'join-Buffer': found the buffer of a stream-table join with a grace period"

    @pytest.mark.parametrize("declared", ["timestamped-key-value", "timestamped-window", "suppress"])
    def test_it_is_refused_whatever_it_is_declared_as(self, declared: str) -> None:
        buffered = samples("join-Buffer", lambda k: b"\0" + TIME + k + b"\0\0\0\x01", BUFFERED)
        assert found(buffered, **one_store("join-Buffer", declared))[0].startswith(self.MESSAGE)

    def test_an_empty_one_is_refused_by_its_name(self) -> None:
        [finding] = found([], **one_store("join-Buffer", "timestamped-key-value"))
        assert finding.startswith(self.MESSAGE)
        assert finding.endswith("rescale a program without `Joined#withGracePeriod`.")

    def test_a_store_that_only_has_such_a_name_is_moved(self) -> None:
        sampled = samples("join-Buffer", lambda k: k)
        assert found(sampled, **one_store("join-Buffer", "key-value")) == []


class TestForeignKeyJoins:
    """Subscriptions, and the topics that they travel through."""

    def test_a_sound_one_is_taken(self) -> None:
        assert found([*subscriptions(), *subscriptions(f"app-{REGISTRATION}")]) == []

    @pytest.mark.parametrize("topic", ["app-fk-subscription-store-changelog", f"app-{REGISTRATION}"])
    def test_a_subscription_that_names_a_wrong_partition_is_refused(self, topic: str) -> None:
        assert found(subscriptions(topic, shift=1)) == [
            f"topic '{topic}': found a subscription at partition 1, offset 0 whose primary key 'left-0' is said "
            "to be "
            "in partition 0; expected partition 3 of the left table's 4, where murmur2 puts it. Declare the "
            "partitioner of the left table's topics. If the primary key is serialised otherwise here than in its "
            "topic, the join can't be moved."
        ]

    def test_records_on_their_way_back_are_where_the_left_tables_partitioner_puts_them(self) -> None:
        answers = [Sample(f"app-{RESPONSE}", Murmur2().partition(k, COUNT), i, k, T) for i, k in enumerate(KEYS)]
        assert found(answers) == []
        [finding] = found([replace(s, partition=(s.partition + 1) % COUNT) for s in answers])
        assert finding.startswith(f"topic 'app-{RESPONSE}': found 24 of 24 sampled records elsewhere")

    def test_a_subscription_store_declared_as_something_else_is_known_by_its_values(self) -> None:
        stores = [
            {"name": s, "type": "timestamped-key-value"}
            for s in ("left-table", "joined", "right-table", "fk-subscription-store")
        ]
        first, second = found(subscriptions(), stores=stores)
        assert first == (
            "topic 'app-fk-subscription-store-changelog': found records that only a foreign-key-subscription "
            "store "
            "writes, first at partition 1, offset 0; expected records of the timestamped-key-value store "
            "fk-subscription-store. Declare `type: foreign-key-subscription`."
        )
        assert "They are where the keys of foreign-key-subscription stores would be" in second

    def test_another_store_declared_as_subscriptions_is_refused(self) -> None:
        stores = [
            {"name": "left-table", "type": "foreign-key-subscription"},
            *({"name": s, "type": "timestamped-key-value"} for s in ("joined", "right-table")),
            {"name": "fk-subscription-store", "type": "foreign-key-subscription"},
        ]
        findings = found(samples("left-table", lambda k: k), stores=stores)
        assert any("0 left tables that it could belong to (no registration topic)" in f for f in findings)
        assert any("instead of 4 bytes of length" in f for f in findings)

    def test_tables_with_two_partitioners_are_refused(self) -> None:
        fields = {
            "topology": None,
            "outputs": [],
            "inputs": [
                {"topic": "left", "policy": "paused", "partitioner": "crc32"},
                {"topic": "more", "policy": "paused"},
                {"topic": "right", "policy": "paused"},
            ],
            "subtopologies": [
                {"sources": ["left", "more", RESPONSE], "stores": [], "sinks": [REGISTRATION]},
                {"sources": ["right", REGISTRATION], "stores": ["fk-subscription-store"], "sinks": [RESPONSE]},
            ],
            "stores": [{"name": "fk-subscription-store", "type": "foreign-key-subscription"}],
        }
        given = situation([], **fields)
        topics = {**given.cluster.topics, "more": replace(given.cluster.topics["left"], name="more")}
        findings = check(replace(given, cluster=replace(given.cluster, topics=topics)))
        assert [f.expected for f in findings] == [
            "one partitioner: the table of a foreign-key join is found by it"
        ]
