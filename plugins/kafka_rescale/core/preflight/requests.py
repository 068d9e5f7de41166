"""Preflight: do all brokers answer the requests that this expansion will send?

Apache Kafka's brokers do so since 2.5. Other implementations of the protocol lack some requests. Behind the
promotion it would be too late to find that out.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.errors import Finding
from kafka_rescale.core.preflight.situation import Situation

ALWAYS = {
    "AddOffsetsToTxn": "commits the positions of copies with their records",
    "AddPartitionsToTxn": "writes copies in transactions",
    "CreateTopics": "makes the topics of the new generation",
    "DeleteGroups": "removes the groups of generations that are retired",
    "DeleteRecords": "empties a copy that has to begin anew",
    "DeleteTopics": "removes the topics of generations that are retired",
    "DescribeConfigs": "gives the new topics the configuration of the old ones",
    "EndTxn": "writes copies in transactions",
    "IncrementalAlterConfigs": "holds compaction back while copies are proven",
    "InitProducerId": "fences the producers of an earlier attempt",
    "OffsetCommit": "gives the new generation its start offsets",
    "OffsetFetch": "reads the positions of the old generation",
    "TxnOffsetCommit": "commits the positions of copies with their records",
}
"""Names of the requests (Kafka's ApiKeys), and what an expansion does by each."""

GROWS = {"CreatePartitions": "gives topics more partitions, some only behind the promotion"}
STREAMS_PROTOCOL = {
    "StreamsGroupDescribe": "sees the members of a group of the streams protocol (KIP-1071)",
    "StreamsGroupHeartbeat": "lets members of the streams protocol leave that were killed (KIP-1071)",
}

TRANSACTION_VERSION = "transaction.version"
SAFE_TRANSACTIONS = 2
"""From this level on brokers refuse a record that comes after its transaction has ended (KIP-890)."""


def unknown_requests(situation: Situation) -> Iterator[Finding]:
    """Yield one finding for each request that this expansion needs and some broker does not know."""
    told = situation.cluster.abilities.requests
    for name, purpose in _needed(situation).items():
        lacking = sorted(broker for broker, known in told.items() if name not in known)
        if lacking:
            yield Finding(
                f"request {name}",
                f"brokers that do not know it: {', '.join(map(str, lacking))} of {len(told)}",
                f"brokers that know it, because it {purpose}",
                "Use brokers that have this request. Apache Kafka has all that are needed since 2.5, and those of "
                "the streams protocol since 4.0.",
            )


def transaction_messages(situation: Situation) -> Iterator[str]:
    """Yield a hint if the brokers may leave transactions hanging, which the cutover would wait for."""
    abilities = situation.cluster.abilities
    level = abilities.features.get(TRANSACTION_VERSION, 0)
    if abilities.requests and level < SAFE_TRANSACTIONS:
        yield (
            f"The brokers have {TRANSACTION_VERSION} {level}, so a late record can leave a transaction open for "
            "ever (KIP-890). A cutover that meets one names it, and the old generation goes on. Brokers from 4.0 "
            f"on prevent it: `kafka-features.sh upgrade --feature {TRANSACTION_VERSION}={SAFE_TRANSACTIONS}`."
        )


def lost_record_messages(situation: Situation) -> Iterator[str]:
    """Yield a hint if Kafka Streams may lose records by itself while the next generation starts.

    That takes exactly-once with the classic protocol, and several stream threads: tasks that move between these
    while they restore may be corrupted, and their thread aborts what its other tasks have done.
    """
    group, plan, lifecycle = situation.cluster.group, situation.plan, situation.application.lifecycle
    written = {topic for topic, habit in situation.cluster.habits.items() if habit.in_transactions}
    uses_transactions = any(move.source in written for move in plan.moves)
    # Whether a user's class starts behind the hold gate is known only when it is loaded.
    is_guarded = group.protocol == "streams" or lifecycle.type == "python" or lifecycle.start_held is not None
    if is_guarded or not uses_transactions or len(group.members) < 2:
        return
    yield (
        f"{situation.green}: with exactly-once and {len(group.members)} stream threads, Kafka Streams itself may "
        "lose records while its tasks move at a start. `start_held` prevents that, and so does the setting "
        "`default.client.supplier=org.kafkarescale.FencedAfterAbort` of the application; if it is set, all is "
        "well (docs/broker-faults.md). `verify` looks for such records, and finds most of them."
    )


def _needed(situation: Situation) -> dict[str, str]:
    plan = situation.plan
    growing = any(stage.grow_outputs for stage in plan.stages) or any(each.grows for each in plan.inputs)
    needed = dict(ALWAYS)
    if growing or plan.is_in_place:
        needed |= GROWS
    if situation.cluster.group.protocol == "streams":
        needed |= STREAMS_PROTOCOL
    return needed
