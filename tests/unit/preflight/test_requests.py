"""What the brokers or this version could not finish is refused before anything is touched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.cluster import Abilities, GroupDescription
from kafka_rescale.core.control.keys import LARGEST_RECORD_BYTES
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.preflight.check import check, messages
from kafka_rescale.core.preflight.requests import (
    ALWAYS,
    GROWS,
    STREAMS_PROTOCOL,
    transaction_messages,
    unknown_requests,
)
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.preflight.targets import countable_partitions
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.core.verify.proof import Proof
from kafka_rescale.core.verify.report import LogCount, PartitionContent, StoreReport

from tests.support.situations import TOPICS, situation

EVERY = frozenset({*ALWAYS, *GROWS, *STREAMS_PROTOCOL})


def on(*known: frozenset[str], level: int = 2, **changes: Any) -> Situation:
    """The sound application on brokers 1, 2, … that support these requests."""
    features = {"transaction.version": level} if level else {}
    abilities = Abilities(dict(enumerate(known, 1)), features)
    return situation(cluster={"abilities": abilities, **changes})


def test_it_names_the_request_the_brokers_the_purpose_and_the_remedy() -> None:
    lacking = EVERY - {"CreatePartitions"}
    (found,) = unknown_requests(on(EVERY, lacking, lacking))
    assert str(found) == (
        "request CreatePartitions: found brokers that do not know it: 2, 3 of 3; expected brokers that know it, "
        "because it gives topics more partitions, some only behind the promotion. Use brokers that have this "
        "request. Apache Kafka has all that are needed since 2.5, and those of the streams protocol since 4.0."
    )


@pytest.mark.parametrize("name", sorted(ALWAYS))
def test_each_request_is_missed(name: str) -> None:
    assert [finding.what for finding in check(on(EVERY - {name}))] == [f"request {name}"]


def test_nothing_is_refused_where_all_are_known_or_nobody_has_told() -> None:
    assert not check(on(EVERY))
    assert not check(on())


def test_requests_of_the_streams_protocol_are_needed_by_its_groups_only() -> None:
    given = on(EVERY - set(STREAMS_PROTOCOL))
    assert not list(unknown_requests(given))
    group = replace(given.cluster.group, protocol="streams")
    assert isinstance(group, GroupDescription)
    assert len(list(unknown_requests(on(EVERY - set(STREAMS_PROTOCOL), group=group)))) == len(STREAMS_PROTOCOL)


def test_transactions_that_may_hang_are_told() -> None:
    (hint,) = transaction_messages(on(EVERY, level=0))
    assert "transaction.version 0" in hint
    assert "KIP-890" in hint
    assert hint in messages(on(EVERY, level=0))
    assert not list(transaction_messages(on(EVERY)))
    assert not list(transaction_messages(on(level=0))), "no broker has told"


def test_more_partitions_than_a_report_can_hold_are_refused() -> None:
    given = situation()
    copied = {move.source for move in given.plan.moves}
    wide = {name: replace(topic, partitions=20_000) for name, topic in TOPICS.items() if name in copied}
    assert not list(countable_partitions(given))
    (refusal,) = countable_partitions(situation(topics=wide))
    assert "100,000 partitions to copy; expected at most 80,000" in str(refusal)


def test_more_partitions_than_a_proof_can_hold_are_refused() -> None:
    """The sizes that preflight assumes are those of the record."""
    copied = {move.source for move in situation().plan.moves}
    for count, is_refused in ((5_500, False), (6_500, True)):
        wide = {name: replace(topic, partitions=count) for name, topic in TOPICS.items() if name in copied}
        given = situation(2 * count, topics=wide)
        found = [str(each) for each in countable_partitions(given)]
        assert bool(found) is is_refused, found
        assert (len(full_proof(given.plan).model_dump_json()) > LARGEST_RECORD_BYTES) is is_refused
    assert "26,000 partitions of changelogs that become 52,000: some 11.2 MB" in found[0]


def full_proof(plan: Plan) -> Proof:
    """A proof with long offsets and as many entries in each partition."""
    many = 1_234_567_890
    blue = {m.source: dict.fromkeys(range(m.source_partitions), many) for m in plan.changelogs}
    green = {m.target: dict.fromkeys(range(m.target_partitions), many) for m in plan.changelogs}
    content = {"blue_live": many, "green_live": many, "blue_hash": "0" * 16, "green_hash": "0" * 16}
    stores = tuple(
        StoreReport(
            store=m.store,
            store_type=m.store_type,
            blue_topic=m.source,
            green_topic=m.target,
            blue=LogCount(),
            green=LogCount(),
            expired=0,
            surplus=0,
            partitions=tuple(PartitionContent(partition=p, **content) for p in range(m.target_partitions)),
            blue_partitions=(many,) * m.source_partitions,
        )
        for m in plan.changelogs
    )
    return Proof(
        application=plan.application,
        plan=plan.fingerprint,
        attempt=1,
        seconds=1.0,
        fences=Fences(
            begun=blue,
            green_begun=green,
            fence=blue,
            green_ends=green,
            green_begins=green,
            green_topics=dict.fromkeys(green, "id of 22 letters, as is"),
            blue_ends=blue,
            as_of_ms=many,
            copied_as_of_ms=dict.fromkeys(blue, many),
        ),
        stores=stores,
    )
