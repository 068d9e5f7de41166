"""Refusals because of real records. For a sound application, the same checks find nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic
from kafka_rescale.core.errors import PreflightRefused
from kafka_rescale.core.preflight.expected_state import ExpectedState

from tests.support.situations import all_placed_by
from tests.support.small_application import KEYS, Made, declared, placed, records
from tests.support.small_cluster import create, make, picture, run_preflight

pytestmark = pytest.mark.integration
Client = Mapping[str, str]


def refusal(client: Client, directory: Path, name: str, target: int = 8, **changes: Any) -> str:
    """Return the message of a refused preflight, and assert that it has left everything as it was."""
    before = picture(client, name)
    with pytest.raises(PreflightRefused) as error:
        run_preflight(client, directory, name, target, **changes)
    assert picture(client, name) == before
    return str(error.value)


def inputs(name: str, **changes: str) -> list[dict[str, Any]]:
    """The declared inputs, with changes to the keyed input."""
    orders, customers = declared(name)["inputs"]
    return [orders, {**customers, **changes}]


def stores(**types: str) -> list[dict[str, Any]]:
    """The declared stores. Some have another type."""
    return [{**s, "type": types.get(s["name"], s["type"])} for s in declared("x")["stores"]]


def test_a_sound_application_gets_its_plan(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique)
    result = run_preflight(client, tmp_path, unique)
    assert not result.noop
    assert result.plan is not None
    assert {(m.source_partitions, m.target_partitions) for m in result.plan.moves} == {(4, 8)}
    assert f"{unique}-by-customer-repartition: 24 records not yet processed." in result.messages


def test_records_of_a_librdkafka_producer(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique, spoilt={"customers": placed(KEYS, 4, "crc32")})
    assert refusal(client, tmp_path, unique) == (
        f"- topic '{unique}-customers': found 19 of 24 sampled records elsewhere, first at partition 0, "
        "offset 0: key 'customer-5' belongs to partition 2 of 4; expected every key where murmur2 puts it. "
        "All of them fit crc32, the default of librdkafka producers: declare `partitioner: crc32`."
    )
    assert "found crc32 for" in refusal(client, tmp_path, unique, inputs=inputs(unique, partitioner="crc32"))


def test_records_whose_partition_their_producer_has_chosen(client: Client, tmp_path: Path, unique: str) -> None:
    """Apache's StreamsSmokeTest ends in this way: it sends one record of the same key to each partition."""
    markers = [Made(partition, b"flush") for partition in range(4)]
    make(client, unique, spoilt={"customers": [*placed(KEYS, 4), *markers]})
    found = refusal(client, tmp_path, unique)
    assert f"- topic '{unique}-customers': found 3 of 28 sampled records elsewhere" in found
    assert "The other 25 are where murmur2 puts them: a producer chooses the partition of some records" in found


def test_an_application_that_uses_another_partitioner_throughout(
    client: Client, tmp_path: Path, unique: str
) -> None:
    by_crc32 = records(unique, partitioner="crc32")
    make(client, unique, spoilt={topic.removeprefix(f"{unique}-"): made for topic, made in by_crc32.items()})
    assert run_preflight(client, tmp_path, unique, **all_placed_by(unique, "crc32")).plan is not None


def test_a_wrong_key_is_found_in_the_newest_part_of_a_long_partition(
    client: Client, tmp_path: Path, unique: str
) -> None:
    home = placed(KEYS[:1], 4)[0]
    elsewhere = home._replace(partition=(home.partition + 1) % 4)
    filler = [Made(0, key) for key, partition in ((m.key, m.partition) for m in placed(KEYS, 4)) if partition == 0]
    make(client, unique, spoilt={"by-customer-repartition": [*filler * 60, *[home] * 300, elsewhere]})
    assert ": found 1 of " in refusal(client, tmp_path, unique)


def test_records_without_keys_before_any_state_are_said(client: Client, tmp_path: Path, unique: str) -> None:
    make(
        client,
        unique,
        spoilt={"customers": [*placed(KEYS, 4), Made(2, None)]},
        configs={"customers": {"cleanup.policy": "delete"}},
    )
    result = run_preflight(client, tmp_path, unique)
    assert result.plan is not None
    assert (
        f"{unique}-customers: no key in 1 sampled record, first at partition 2, offset 7. Kafka Streams drops "
        "such records before its tables, aggregates and joins." in result.messages
    )


def test_a_changelog_key_that_is_too_short_for_a_window(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique)
    found = refusal(client, tmp_path, unique, stores=stores(totals="timestamped-window"))
    assert found == (
        f"- topic '{unique}-totals-changelog': found key 'customer-8' at partition 0, offset 0: 10 bytes, "
        "instead of at least 12 bytes; expected keys of the timestamped-window store totals. The "
        "sampled keys fit timestamped-key-value: declare the store's real type."
    )


def test_a_session_store_declared_as_a_window(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique)
    found = refusal(client, tmp_path, unique, stores=stores(visits="window"))
    assert found.startswith(f"- topic '{unique}-visits-changelog': found key 0x")
    assert found.endswith(
        "expected keys of the window store visits. The sampled keys fit session: declare the store's real type."
    )


def test_a_window_declared_as_key_value(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique)
    first, _, second = refusal(client, tmp_path, unique, stores=stores(hourly="key-value")).partition("\n")
    assert first == (
        f"- topic '{unique}-hourly-changelog': found cleanup.policy compact,delete; expected compact for the "
        "key-value store hourly. Kafka Streams sets compact,delete for windows and sessions: declare the "
        "store's real type. If the program itself sets it, so that entries expire, declare `type: processor` with "
        "`partitioning_key: whole`."
    )
    assert "sampled records elsewhere" in second


def test_a_repartition_topic_with_the_times_of_the_brokers(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique, configs={"by-customer-repartition": {"message.timestamp.type": "LogAppendTime"}})
    found = refusal(client, tmp_path, unique)
    assert found.startswith(
        f"- topic '{unique}-by-customer-repartition': found message.timestamp.type LogAppendTime; expected "
        "CreateTime: the records in flight are carried with their timestamps"
    )
    assert len(found.splitlines()) == 1


def test_a_topic_that_is_there_already_and_takes_less(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique)
    successor = f"{unique}-customers-p8"
    create(client, [NewTopic(successor, 8, config={"message.timestamp.type": "LogAppendTime"})])
    lifecycle = declared(unique)["lifecycle"]
    reading = {**lifecycle, "start": f"{lifecycle['start']} {{input:{unique}-customers}}"}
    bridged = inputs(unique, policy="repartitioned", isolation_level="read_committed")
    assert refusal(client, tmp_path, unique, inputs=bridged, lifecycle=reading).startswith(
        f"- topic {successor!r}: found message.timestamp.type LogAppendTime on the topic that is there already; "
        f"expected CreateTime: it is to keep the times of {unique}-customers. "
    )


def test_a_name_with_one_character_more_than_kafka_takes(client: Client, tmp_path: Path, unique: str) -> None:
    """The name of the running generation's changelog is as long as a topic's name can be."""
    store = "s" * (249 - len(f"{unique}--changelog"))
    shape = declared(unique)
    make(client, unique)
    changelog = f"{unique}-{store}-changelog"
    create(client, [NewTopic(changelog, 4, config={"cleanup.policy": "compact"})])
    found = refusal(
        client,
        tmp_path,
        unique,
        topology=shape["topology"].replace("customers, totals,", f"customers, {store},"),
        stores=[{**s, "name": store if s["name"] == "totals" else s["name"]} for s in shape["stores"]],
        unrelated=[f"{unique}-totals-changelog"],
    )
    assert found.startswith(f"- topic '{unique}-g2-{store}-changelog': found a name of 252 characters")
    assert len(found.splitlines()) == 1


def test_co_partitioned_topics_with_different_counts(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique, counts={"customers": 3}, spoilt={"customers": placed(KEYS, 3)})
    message = refusal(client, tmp_path, unique, repartitions=[{"name": "by-customer", "count": "start_command"}])
    assert message.splitlines()[0] == (
        "- sources of sub-topology 1: found by-customer-repartition with 4, "
        f"{unique}-customers with 3; expected equal counts: one key's records and state belong to one task. "
        "If they are joined, the program can't be running: Kafka Streams refuses that. If they are only merged, "
        "or share a processor, they can't be rescaled together: make them applications of their own, or let the "
        "smaller one come through a repartition() with the others' count; its state begins anew either way. Don't "
        "grow a topic by hand under the running application: keys would come to tasks that don't have their state."
    )


def test_an_input_that_somebody_has_grown(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique, counts={"customers": 6}, spoilt={"customers": placed(KEYS, 6)})
    message = refusal(client, tmp_path, unique, repartitions=[{"name": "by-customer", "count": "start_command"}])
    assert message.splitlines()[0] == (
        f"- input topic '{unique}-customers': found 6 partitions with policy paused, while {unique} is tied to 4; "
        "expected one layout of the keys: its old partitions hold records placed with either count. Declare "
        "`policy: repartitioned`, which puts every record where its key belongs, in order; or `unkeyed` if the "
        "program re-keys it before any state. With a static partitioner (KIP-878), ask for 6 partitions."
    )


def test_a_topic_that_does_not_exist(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique)
    shape = declared(unique)
    missing = f"{unique}-customer"
    changed = shape["topology"].replace(f"{unique}-customers", missing)
    found = refusal(
        client,
        tmp_path,
        unique,
        topology=changed,
        inputs=[shape["inputs"][0], {"topic": missing, "policy": "paused"}],
    )
    assert found == (
        f"- topic '{missing}': found no such topic; expected the input topic. "
        "Create it, or correct its name in the topology and `inputs:`."
    )


def test_all_findings_come_at_once(client: Client, tmp_path: Path, unique: str) -> None:
    make(
        client,
        unique,
        configs={"totals-changelog": {"message.timestamp.type": "LogAppendTime"}},
        spoilt={"customers": placed(KEYS, 4, "crc32")},
    )
    found = refusal(client, tmp_path, unique, expected=ExpectedState.RUNNING, stores=stores(visits="window"))
    assert [line.partition(": found ")[0] for line in found.splitlines()] == [
        f"- application '{unique}'",
        f"- topic '{unique}-totals-changelog'",
        f"- topic '{unique}-visits-changelog'",
        f"- topic '{unique}-customers'",
    ]
