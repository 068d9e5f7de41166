"""Every check of preflight: silent on a sound application, and one exact message on a spoilt one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.cluster import ClusterDescription, GroupDescription, TopicDescription
from kafka_rescale.core.control_records import ControlState, Generations
from kafka_rescale.core.journal import Journal, Phase
from kafka_rescale.core.preflight import changes_anything, check, is_continued, messages
from kafka_rescale.core.situation import Sample, Situation
from kafka_rescale.core.topology import SubTopology, Topology
from kafka_rescale.core.topology_describe import parse_describe

from tests.support.small_application import (
    KEYS,
    START_MS,
    application,
    declared,
    placed,
    records,
    topic_configs,
    topology_text,
)

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
    """Samples of a sound application; those of the topics in ``spoilt`` replaced."""
    sound = {
        topic: [Sample(topic, m.partition, offset, m.key, m.timestamp_ms) for offset, m in enumerate(made)]
        for topic, made in records(NAME).items()
    }
    return tuple(s for found in {**sound, **spoilt}.values() for s in found)


def situation(target: int = 8, **changes: Any) -> Situation:
    """A sound application that runs; ``topics`` replaces single topics (None: it does not exist)."""
    fields = {k: changes.pop(k) for k in ("inputs", "outputs", "stores", "repartitions") if k in changes}
    topics = {k: v for k, v in {**TOPICS, **changes.pop("topics", {})}.items() if v is not None}
    cluster = ClusterDescription("c", brokers=1, topics=topics, group=changes.pop("group", RUNNING))
    cluster = replace(cluster, **changes.pop("cluster", {}))
    topology = parse_describe(topology_text(NAME))
    changes = {"samples": samples(), "now_ms": START_MS, **changes}
    return Situation(application(NAME, **fields), topology, target, cluster, **changes)


def found(given: Situation) -> list[str]:
    """All findings as texts."""
    return [str(finding) for finding in check(given)]


def with_counts(**counts: int) -> dict[str, TopicDescription]:
    """Topics with other counts; names without the application's, underscores for dashes."""
    names = {f"{NAME}-{name.replace('_', '-')}": n for name, n in counts.items()}
    return {name: replace(TOPICS[name], partitions=n) for name, n in names.items()}


def with_configs(topic: str, **configs: str) -> dict[str, TopicDescription]:
    """One topic with other configs; double underscores for dots."""
    dotted = {name.replace("__", "."): value for name, value in configs.items()}
    return {topic: replace(TOPICS[topic], configs={**TOPICS[topic].configs, **dotted})}


def misplaced(topic: str, partitioner: str = "crc32", partitions: int = 4) -> dict[str, list[Sample]]:
    """Samples of a topic as another partitioner would have placed them."""
    made = placed(KEYS, partitions, partitioner)
    return {topic: [Sample(topic, m.partition, i, m.key, START_MS) for i, m in enumerate(made)]}


@pytest.mark.parametrize("target", [8, 6, 5, 100])
def test_a_sound_application_may_grow_to_any_count(target: int) -> None:
    given = situation(target)
    assert found(given) == []
    assert changes_anything(given)
    assert {m.target_partitions for m in given.plan.moves} == {target}


def test_already_at_the_target_is_no_finding_and_no_change() -> None:
    assert found(situation(4)) == []
    assert not changes_anything(situation(4))


def test_an_output_that_shall_grow_is_a_change() -> None:
    assert changes_anything(situation(4, outputs=[{"topic": "shop-totals", "partitions": 6}]))


def test_a_repartition_topic_may_shrink_if_the_program_sets_its_count() -> None:
    repartition = "by-customer-repartition"
    unjoined = Topology(
        (
            SubTopology(0, ("shop-orders",), (), (repartition,)),
            SubTopology(1, (repartition,), ("totals",), ()),
        )
    )
    fixed = application(NAME, inputs=FIXED[:1], repartitions=SET_BY_PROGRAM, stores=STORES[1:2], outputs=[])
    given = replace(situation(2), application=fixed, topology=unjoined)
    assert found(given) == []
    assert [(m.source_partitions, m.target_partitions) for m in given.plan.moves] == [(4, 2), (4, 2)]
    assert given.plan.inputs[0].target == 4


def test_the_names_follow_the_running_generation() -> None:
    given = situation(control=ControlState(generations=Generations(running="shop-g2", generation=2, partitions=4)))
    assert (given.blue, given.green) == ("shop-g2", "shop-g3")
    assert found(given)[0].startswith("application 'shop-g2': found none of its internal topics on the cluster")


Refusals = dict[str, tuple[Callable[[], Situation], list[str]]]

TOPIC_REFUSALS: Refusals = {
    "input missing": (
        lambda: situation(topics={"shop-orders": None}),
        [
            "topic 'shop-orders': found no such topic; expected the input topic. Create it, or correct its "
            "name in the topology and `inputs:`."
        ],
    ),
    "output missing": (
        lambda: situation(topics={"shop-totals": None}),
        [
            "topic 'shop-totals': found no such topic; expected the output topic. Create it, or delete it "
            "from `outputs:`."
        ],
    ),
    "repartition missing": (
        lambda: situation(topics={"shop-by-customer-repartition": None}),
        [
            "topic 'shop-by-customer-repartition': found no such topic; expected the repartition topic. Paste "
            "the topology that the running program prints."
        ],
    ),
    "optimised source table": (
        lambda: situation(topics={"shop-customers-changelog": None}),
        [
            "topic 'shop-customers-changelog': found no such topic; expected the changelog of store "
            "customers. Either `topology.optimization` makes an input (by-customer-repartition, "
            "shop-customers) serve as its changelog, or the store has no logging. Neither can be moved: run "
            "without that optimisation, or with logging, first."
        ],
    ),
    "has never run": (
        lambda: situation(topics={t: None for t in TOPICS if t.endswith(("changelog", "repartition"))}),
        [
            "application 'shop': found none of its internal topics on the cluster; expected topics such as "
            "shop-by-customer-repartition. Correct `application_id` or the Kafka connection; if it has never "
            "run, it has no state to move."
        ],
    ),
    "window declared as key-value": (
        lambda: situation(topics=with_configs("shop-totals-changelog", cleanup__policy="compact,delete")),
        [
            "topic 'shop-totals-changelog': found cleanup.policy compact,delete; expected compact for the "
            "timestamped-key-value store totals. Kafka Streams sets compact,delete for windows and sessions: "
            "declare the store's real type."
        ],
    ),
    "changelog that is not compacted": (
        lambda: situation(topics=with_configs("shop-visits-changelog", cleanup__policy="delete")),
        [
            "topic 'shop-visits-changelog': found cleanup.policy delete; expected compact,delete or compact "
            "for the session store visits. Without compaction the changelog loses live entries: set "
            "cleanup.policy=compact and check the store."
        ],
    ),
    "LogAppendTime": (
        lambda: situation(topics=with_configs("shop-totals-changelog", message__timestamp__type="LogAppendTime")),
        [
            "topic 'shop-totals-changelog': found message.timestamp.type LogAppendTime; expected CreateTime: "
            "the timestamps of the entries are part of the state. Set message.timestamp.type=CreateTime on it."
        ],
    ),
    "too few brokers": (
        lambda: situation(
            topics={"shop-totals-changelog": replace(TOPICS["shop-totals-changelog"], replication_factor=3)},
            cluster={"brokers": 2},
        ),
        [
            "topic 'shop-totals-changelog': found replication factor 3 with 2 live brokers; expected as many "
            "brokers as its copy needs replicas. Start the missing brokers."
        ],
    ),
    "min.insync.replicas": (
        lambda: situation(topics=with_configs("shop-by-customer-repartition", min__insync__replicas="2")),
        [
            "topic 'shop-by-customer-repartition': found min.insync.replicas 2 with replication factor 1; "
            "expected at most the replication factor: nothing could be written to its copy. Lower "
            "min.insync.replicas, or raise the replication factor."
        ],
    ),
    "foreign data": (
        lambda: situation(green_records={"shop-g2-totals-changelog": 17}),
        [
            "topic 'shop-g2-totals-changelog': found 17 records in a topic that no expansion of this "
            "application has made; expected a name that is free for the next generation. If nobody needs it, "
            "delete it (`kafka-topics.sh --delete --topic shop-g2-totals-changelog`)."
        ],
    ),
    "somebody runs as green": (
        lambda: situation(green_group=GroupDescription("shop-g2", "Stable", ("a", "b"))),
        [
            "group 'shop-g2': found 2 members; expected no member before the next generation is started. Stop "
            "whatever runs with that application.id."
        ],
    ),
}

COUNT_REFUSALS: Refusals = {
    "co-partitioned topics differ": (
        lambda: situation(
            topics=with_counts(by_customer_repartition=4, customers=6), repartitions=SET_BY_PROGRAM, inputs=INPUTS
        ),
        [
            "sources of sub-topology 1: found by-customer-repartition with 4, shop-customers with 6; expected "
            "equal counts: one key's records and state belong to one task. Give the external topics the same "
            "count; Kafka Streams itself refuses to join them as they are.",
            *(
                f"topic 'shop-{store}-changelog': found 4 partitions; expected 6, one per task of sub-topology 1 "
                "(by-customer-repartition with 4, shop-customers with 6). Kafka Streams refuses to start on "
                "it: a source or the changelog was grown by hand. Restore the counts, or reset the "
                "application."
                for store in ("customers", "totals", "hourly", "visits")
            ),
        ],
    ),
    "would differ afterwards": (
        lambda: situation(6, inputs=FIXED, repartitions=SET_BY_PROGRAM),
        [
            "sources of sub-topology 1 after the expansion to 6: found by-customer-repartition with 6, "
            "shop-customers with 4; expected equal counts: one key's records and state belong to one task. "
            "Let all of them grow or none: `policy: paused` for an external topic, `count: start_command` for "
            "a repartition topic whose count the program sets."
        ],
    ),
    "enforced count that is not declared": (
        lambda: situation(topics=with_counts(orders=12, customers=4, by_customer_repartition=6)),
        [
            "topic 'shop-by-customer-repartition': found 6 partitions; expected 4, as Kafka Streams derives "
            "it from shop-orders with 12. If the program sets it (withNumberOfPartitions), declare "
            "`{name: by-customer, count: start_command}` in `repartitions:`. If a topic was grown by hand, "
            "undo that: the application can't start again.",
            "sources of sub-topology 1",
            *["topic 'shop-"] * 4,
            "input topic 'shop-orders'",
        ],
    ),
    "changelog grown by hand": (
        lambda: situation(topics=with_counts(visits_changelog=8), samples=()),
        [
            "topic 'shop-visits-changelog': found 8 partitions; expected 4, one per task of sub-topology 1 "
            "(by-customer-repartition with 4, shop-customers with 4). Kafka Streams refuses to start on it: a "
            "source or the changelog was grown by hand. Restore the counts, or reset the application."
        ],
    ),
    "inputs can not shrink": (
        lambda: situation(2),
        [
            f"input topic 'shop-{topic}': found 4 partitions with policy {policy}; expected at most the "
            "target of 2: a "
            "topic can't lose partitions. Declare `policy: fixed`, and `count: start_command` for the "
            "repartition topics that shall shrink; or ask for 4 or more."
            for topic, policy in (("orders", "unkeyed"), ("customers", "paused"))
        ],
    ),
    "nothing may change": (
        lambda: situation(8, inputs=FIXED),
        [
            "target of 8 partitions: found 4 partitions, and nothing declared that may change; expected an "
            "input that grows, or a repartition topic whose count the program sets. Declare `policy: unkeyed` "
            "or `paused` for an input, or `count: start_command` for a repartition."
        ],
    ),
}

CUSTOMERS_CHANGELOG = "shop-customers-changelog"
DATA_REFUSALS: Refusals = {
    "librdkafka's producers": (
        lambda: situation(samples=samples(**misplaced("shop-customers"))),
        [
            "topic 'shop-customers': found 19 of 24 sampled records elsewhere, first at partition 3, offset "
            "2: key 'customer-2' belongs to partition 2 of 4; expected every key where murmur2 puts it. All "
            "of them fit crc32, the default of librdkafka producers: declare `partitioner: crc32`."
        ],
    ),
    "grown with keyed records in it": (
        lambda: situation(samples=samples(**misplaced("shop-customers", "murmur2", 3))),
        [
            "topic 'shop-customers': found 16 of 24 sampled records elsewhere, first at partition 1, offset "
            "0: key 'customer-0' belongs to partition 3 of 4; expected every key where murmur2 puts it. These "
            "fit murmur2 with 3 partitions: the topic was grown with records in it, and one key may be in two "
            "partitions. They have to be processed, or moved, first."
        ],
    ),
    "no known partitioner": (
        lambda: situation(
            samples=samples(
                **{CUSTOMERS_CHANGELOG: [Sample(CUSTOMERS_CHANGELOG, 3, i, k) for i, k in enumerate(KEYS)]}
            )
        ),
        [
            "topic 'shop-customers-changelog': found 18 of 24 sampled records elsewhere, first at partition "
            "3, offset 1: key 'customer-1' belongs to partition 1 of 4; expected every key where murmur2 puts "
            "it. No known partitioner fits: the producer sets partitions itself, or the state has another key."
        ],
    ),
    "no keys": (
        lambda: situation(samples=samples(**{"shop-customers": [Sample("shop-customers", 1, 7, None)]})),
        [
            "input topic 'shop-customers': found no key in 1 sampled record, first at partition 1, offset 7; "
            "expected keys in an input with policy paused: they decide which partition a record belongs to. "
            "Declare `policy: unkeyed` if the program re-keys it before any state; else mend the producer."
        ],
    ),
    "key too short for a window": (
        lambda: situation(
            samples=samples(**{"shop-hourly-changelog": [Sample("shop-hourly-changelog", 0, 5, b"abc")]})
        ),
        [
            "topic 'shop-hourly-changelog': found key 'abc' at partition 0, offset 5: 3 bytes, too short for "
            "the 12 that follow the key; expected keys of the timestamped-window store hourly. The sampled "
            "keys fit timestamped-key-value: declare the store's real type."
        ],
    ),
}


@pytest.mark.parametrize("case", [*TOPIC_REFUSALS, *DATA_REFUSALS])
def test_a_spoilt_topic_is_refused(case: str) -> None:
    make, expected = {**TOPIC_REFUSALS, **DATA_REFUSALS}[case]
    assert found(make()) == expected


@pytest.mark.parametrize("case", COUNT_REFUSALS)
def test_counts_that_contradict_are_refused(case: str) -> None:
    make, expected = COUNT_REFUSALS[case]
    given = [f for f in found(make()) if "sampled records elsewhere" not in f]
    assert [text[: len(start)] for text, start in zip(given, expected, strict=True)] == expected


def test_a_session_store_declared_as_window_and_the_reverse() -> None:
    swapped = [
        {"name": "customers", "type": "timestamped-key-value"},
        {"name": "totals", "type": "timestamped-key-value"},
        {"name": "hourly", "type": "session"},
        {"name": "visits", "type": "window"},
    ]
    hourly, visits = found(situation(stores=swapped))
    assert hourly.startswith("topic 'shop-hourly-changelog': found key 0x637573746f6d65722d30")
    assert hourly.endswith("The sampled keys fit window or timestamped-window: declare the store's real type.")
    assert "ms; expected keys of the window store visits. The sampled keys fit session" in visits


def test_a_key_value_store_declared_as_window_is_seen_by_its_keys() -> None:
    stores = [{"name": n, "type": "timestamped-window"} for n in ("totals", "hourly")]
    stores += [{"name": "customers", "type": "timestamped-key-value"}, {"name": "visits", "type": "session"}]
    [finding] = found(situation(stores=stores))
    assert finding.startswith("topic 'shop-totals-changelog': found key 'customer-0' at partition")


@pytest.mark.parametrize("topic", ["shop-customers", "shop-by-customer-repartition", CUSTOMERS_CHANGELOG])
def test_a_declared_partitioner_is_the_one_that_is_checked(topic: str) -> None:
    crc32 = {"partitioner": "crc32"}
    stores = [{"name": "customers", "type": "timestamped-key-value", **crc32}, *application(NAME).stores[1:]]
    declared = {
        "inputs": [INPUTS[0], {**INPUTS[1], **(crc32 if topic == "shop-customers" else {})}],
        "repartitions": [{"name": "by-customer", **(crc32 if "repartition" in topic else {})}],
        "stores": stores if topic == CUSTOMERS_CHANGELOG else application(NAME).stores,
    }
    assert len(found(situation(samples=samples(**misplaced(topic))))) == 1
    assert found(situation(samples=samples(**misplaced(topic)), **declared)) == []
    assert len(found(situation(**declared))) == 1


def test_keys_of_an_unkeyed_input_may_lie_anywhere() -> None:
    assert found(situation(samples=samples(**misplaced("shop-orders")))) == []


def test_processed_records_of_an_input_that_an_expansion_has_grown_are_history() -> None:
    old = samples(**misplaced("shop-customers", "murmur2", 2))
    committed = {("shop-customers", p): len(KEYS) for p in range(4)}
    given = situation(samples=old, cluster={"committed": committed})
    assert found(given) == []
    assert "shop-customers: what lies as with 2 partitions is processed, as far as sampled." in messages(given)
    assert len(found(situation(samples=old, cluster={"committed": {("shop-customers", 0): len(KEYS)}}))) == 1
    crc32 = samples(**misplaced("shop-customers"))
    assert len(found(situation(samples=crc32, cluster={"committed": committed}))) == 1


def journal(target: int, phase: Phase = Phase.WARMING) -> ControlState:
    """A control state with an expansion to ``target``."""
    return ControlState(journal=Journal(plan=situation(target).plan, phase=phase, owner="expand_shop/run-1"))


def test_another_target_while_one_is_in_progress() -> None:
    assert found(situation(6, control=journal(8))) == [
        "application 'shop': found an expansion to 8 partitions in progress (phase warming, by "
        "expand_shop/run-1); expected no expansion in progress when 6 are asked for. Finish it by a run with "
        "target 8, or roll it back, then ask again."
    ]
    assert found(situation(6, control=journal(8, Phase.ROLLED_BACK))) == []


def test_the_same_target_continues_whatever_its_own_steps_have_changed() -> None:
    given = situation(8, control=journal(8), green_records={"shop-g2-totals-changelog": 17})
    assert is_continued(given)
    assert found(given) == []
    assert not is_continued(situation(8, control=journal(8, Phase.COMPLETE)))


def test_own_leftovers_are_kept_unless_they_have_another_count() -> None:
    left = TopicDescription("shop-g2-totals-changelog", 8, 1)
    records_left = {left.name: 17}
    rolled_back = journal(8, Phase.ROLLED_BACK)
    topics = {left.name: left}
    assert found(situation(8, control=rolled_back, green_records=records_left, topics=topics)) == []
    assert found(situation(6, control=rolled_back, green_records=records_left, topics=topics)) == [
        "topic 'shop-g2-totals-changelog': found 8 partitions, left by an attempt with another target; "
        "expected 6 partitions or no such topic. Delete it (`kafka-topics.sh --delete --topic "
        "shop-g2-totals-changelog`); blue does not use it."
    ]


def test_running_when_it_should_be_stopped_and_the_reverse() -> None:
    assert found(situation(expect_running=True)) == []
    assert found(situation(expect_running=False, group=STOPPED)) == []
    assert found(situation(expect_running=False)) == [
        "application 'shop': found 1 member in group shop (state Stable); expected a stopped application. "
        "Stop every instance; members that died are gone after session.timeout.ms."
    ]
    assert found(situation(expect_running=True, group=STOPPED)) == [
        "application 'shop': found group shop without members (state Empty); expected a running application. "
        "Start it, and wait until its group is Stable."
    ]


def test_what_is_worth_knowing() -> None:
    repartition, window = "shop-by-customer-repartition", "shop-hourly-changelog"
    given = situation(
        group=STOPPED,
        cluster={"ends": {(repartition, 0): 10, (repartition, 1): 5}, "committed": {(repartition, 0): 7}},
        topics=with_configs(window, retention__ms="1000", retention__bytes="5"),
        now_ms=START_MS + 1001,
    )
    assert found(given) == []
    assert messages(given) == [
        "shop does not run: its group has no member (state Empty).",
        f"{repartition}: 8 records not yet processed.",
        f"{window}: retention.bytes is set, so that the brokers may delete live entries of its copy.",
        f"{window}: 24 of 24 sampled entries are older than its retention.ms (1000); the brokers may delete "
        "them in "
        "the copy before they do so here.",
    ]
