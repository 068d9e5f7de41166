"""Preflight of sampled keys: their shape, their presence and their place."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.core.preflight.check import messages
from kafka_rescale.core.preflight.situation import Situation

from tests.support.situations import (
    CUSTOMERS_CHANGELOG,
    INPUTS,
    NAME,
    STORES,
    Refusals,
    found,
    misplaced,
    sampled,
    samples,
    situation,
    unjoined,
)
from tests.support.small_application import KEYS, START_MS, application, records

MODULE = "tests.support.user_partitioners"
REPARTITION = "shop-by-customer-repartition"


def pinned(function: str) -> Situation:
    """A repartition topic without state behind it. A static partitioner has placed its keys in four partitions."""
    made = [Sample(REPARTITION, i % 4, i, key, START_MS) for i, key in enumerate(KEYS)]
    repartitions = [{"name": "by-customer", "partitioner": f"static:{MODULE}:{function}"}]
    return unjoined(situation(samples=samples(**{REPARTITION: made}), repartitions=repartitions))


def processor(function: str) -> dict[str, str]:
    """The totals as a store whose partitioning keys come from a user's function."""
    return {"name": "totals", "type": "processor", "partitioning_key": f"{MODULE}:{function}"}


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
                **{
                    CUSTOMERS_CHANGELOG: [
                        Sample(CUSTOMERS_CHANGELOG, 3, i, k, START_MS) for i, k in enumerate(KEYS)
                    ]
                }
            )
        ),
        [
            "topic 'shop-customers-changelog': found 18 of 24 sampled records elsewhere, first at partition "
            "3, offset 1: key 'customer-1' belongs to partition 1 of 4; expected every key where murmur2 puts "
            "it. No known partitioner fits. If a processor makes these keys, declare `type: processor` with "
            "`partitioning_key:` (drop-last-N, first-N or module:function), which finds the key of the record "
            "that "
            "an entry was made from; if that can't be derived from the changelog's key, the store can't be moved."
        ],
    ),
    "another partitioner of Kafka": (
        lambda: situation(samples=samples(**misplaced("shop-customers", "linear-hashing:3"))),
        [
            "topic 'shop-customers': found 15 of 24 sampled records elsewhere, first at partition 1, offset 0: "
            "key 'customer-0' belongs to partition 3 of 4; expected every key where murmur2 puts it. All of them "
            "fit linear-hashing:3: declare `partitioner: linear-hashing:3`."
        ],
    ),
    "multicast": (
        lambda: situation(
            samples=samples(
                **{
                    REPARTITION: [
                        Sample(REPARTITION, p, i, k, START_MS) for p in (0, 1) for i, k in enumerate(KEYS)
                    ]
                }
            )
        ),
        [
            "topic 'shop-by-customer-repartition': found 37 of 48 sampled records elsewhere, first at partition "
            "0, offset 0: key 'customer-0' belongs to partition 3 of 4; expected every key where murmur2 puts it. "
            "Key 'customer-0' is in partitions 0 and 1: a partitioner that sends one record to several partitions "
            "(multicast) can't be followed. Send it to one."
        ],
    ),
    "a producer that sends a marker to each partition": (
        lambda: situation(
            samples=samples(
                **{
                    "shop-customers": [
                        *sampled(records(NAME))["shop-customers"],
                        *(Sample("shop-customers", p, 100, b"flush", START_MS) for p in range(4)),
                    ]
                }
            )
        ),
        [
            "topic 'shop-customers': found 3 of 28 sampled records elsewhere, first at partition 1, offset 100: "
            "key 'flush' belongs to partition 0 of 4; expected every key where murmur2 puts it. The other 25 are "
            "where murmur2 puts them: a producer chooses the partition of some records itself, as with a marker "
            "for each partition. The application keeps the state of such a key where the record was sent, and "
            "`verify` would name every such record that is sent later. Let the producer leave the partition to "
            "the key, or send these records to a topic of their own."
        ],
    ),
    "a user's function that fails": (
        lambda: situation(repartitions=[{"name": "by-customer", "partitioner": f"{MODULE}:fails"}]),
        [
            "topic 'shop-by-customer-repartition', partitioner tests.support.user_partitioners:fails for key "
            "0x637573746f6d65722d30 of topic 'by-customer-repartition': found ValueError: invalid literal for "
            "int() with base 10: b'customer-0'; expected one partition of 0 to 3, and always the same. Mend the "
            "function, so that it does exactly what the program's own partitioner does."
        ],
    ),
    "a user's function that finds no partitioning key and fails": (
        lambda: situation(stores=[*STORES[:1], processor("before_a_bar"), *STORES[2:]]),
        [
            "topic 'shop-totals-changelog', partitioning_key tests.support.user_partitioners:before_a_bar for "
            "changelog key 0x637573746f6d65722d30: found ValueError: subsection not found; expected the "
            "partitioning key as bytes, or None. Mend the function: return bytes, or None for a key in which it "
            "finds none."
        ],
    ),
    "a user's function that takes keys for text": (
        lambda: situation(stores=[*STORES[:1], processor("of_text"), *STORES[2:]]),
        [
            "topic 'shop-totals-changelog', partitioning_key tests.support.user_partitioners:of_text for "
            "changelog key 0x637573746f6d65722d30: found 'customer', which is of type str; expected the "
            "partitioning key as bytes, or None. Mend the function: return bytes, or None for a key in which it "
            "finds none."
        ],
    ),
    "static in name only": (
        lambda: pinned("claims_to_be_static"),
        [
            "topic 'shop-by-customer-repartition' with 8 partitions: found key 'customer-4' moved from partition "
            "0 to 4 by static:tests.support.user_partitioners:claims_to_be_static; expected the partition that a "
            "static partitioner has once given it, whatever the count (KIP-878). Mend the function, or declare it "
            "without `static:` so that state moves with its keys."
        ],
    ),
    "no keys": (
        lambda: situation(
            inputs=[{**INPUTS[0], "policy": "paused"}, INPUTS[1]],
            samples=samples(**{"shop-orders": [Sample("shop-orders", 1, 7, None)]}),
        ),
        [
            "input topic 'shop-orders': found no key in 1 sampled record, first at partition 1, offset 7; "
            "expected keys in an input with policy paused: they decide which partition a record belongs to. "
            "Declare `policy: unkeyed` if the program re-keys it before any state; else mend the producer."
        ],
    ),
    "key too short for a window": (
        lambda: situation(
            samples=samples(**{"shop-hourly-changelog": [Sample("shop-hourly-changelog", 0, 5, b"abc", START_MS)]})
        ),
        [
            "topic 'shop-hourly-changelog': found key 'abc' at partition 0, offset 5: 3 bytes, instead of at "
            "least 12 bytes; expected keys of the timestamped-window store hourly. The sampled "
            "keys fit timestamped-key-value: declare the store's real type."
        ],
    ),
}


@pytest.mark.parametrize("case", DATA_REFUSALS)
def test_a_spoilt_one_is_refused(case: str) -> None:
    make, expected = DATA_REFUSALS[case]
    assert found(make()) == expected


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
    assert not any("elsewhere" in f for f in found(situation(samples=samples(**misplaced(topic)), **declared)))
    [elsewhere] = found(situation(**declared))
    assert "sampled records elsewhere" in elsewhere


def test_a_static_partitioner_that_keeps_its_word_is_accepted() -> None:
    assert found(pinned("pinned")) == []


def test_a_target_below_the_initial_count_of_linear_hashing_is_refused() -> None:
    fixed = application(
        NAME,
        inputs=[{**i, "policy": "fixed"} for i in INPUTS],
        repartitions=[{"name": "by-customer", "count": "start_command", "partitioner": "linear-hashing:4"}],
    )
    given = unjoined(replace(situation(2), application=fixed))
    assert found(given) == [
        "topic 'shop-by-customer-repartition' with 2 partitions, partitioner linear-hashing:4: found 2 "
        "partitions; expected at least the initial 4. Declare the count that the topic was created with: below it "
        "linear hashing has no meaning."
    ]
    assert found(replace(given, target=4)) == []


@pytest.mark.parametrize("policy", ["paused", "fixed"])
def test_records_without_a_key_that_are_dropped_before_any_state_are_only_said(policy: str) -> None:
    sound = samples()
    inputs = [{**each, "policy": "fixed"} for each in INPUTS] if policy == "fixed" else INPUTS
    given = situation(4, inputs=inputs, samples=(*sound, Sample("shop-customers", 1, 7, None)))
    assert found(given) == []
    assert messages(given)[-1] == (
        "shop-customers: no key in 1 sampled record, first at partition 1, offset 7. Kafka Streams drops such "
        "records before its tables, aggregates and joins."
    )


def test_keys_of_an_unkeyed_input_may_lie_anywhere() -> None:
    assert found(situation(samples=samples(**misplaced("shop-orders")))) == []


def test_processed_records_of_an_input_that_an_expansion_has_grown_are_history() -> None:
    old = samples(**misplaced("shop-customers", "murmur2", 2))
    committed = {("shop-customers", p): len(KEYS) for p in range(4)}
    given = situation(samples=old, cluster={"committed": committed})
    assert found(given) == []
    assert (
        "shop-customers: its records from before the growth from 2 partitions are processed (sampled)."
        in messages(given)
    )
    assert len(found(situation(samples=old, cluster={"committed": {("shop-customers", 0): len(KEYS)}}))) == 1
    crc32 = samples(**misplaced("shop-customers"))
    assert len(found(situation(samples=crc32, cluster={"committed": committed}))) == 1


def grown(*counts: int) -> tuple[Sample, ...]:
    """Samples of an input whose keys were written once with each count, one after the other."""
    written = [m for n in counts for m in misplaced("shop-customers", "murmur2", n)["shop-customers"]]
    return samples(**{"shop-customers": [replace(s, offset=i) for i, s in enumerate(written)]})


PROCESSED = {("shop-customers", p): 1_000 for p in range(4)}


def test_history_of_two_growths_is_history_too() -> None:
    """If its first records are still there, an input that grew twice under ``paused`` has three layouts."""
    given = situation(samples=grown(2, 3, 4), cluster={"committed": PROCESSED})
    assert found(given) == []
    assert (
        "shop-customers: its records from before the growth from 2 and 3 partitions are processed (sampled)."
        in messages(given)
    )
    [finding] = found(replace(given, cluster=replace(given.cluster, committed={("shop-customers", 0): 1})))
    assert "These fit murmur2 with 2 or 3 partitions: the topic was grown with records in it" in finding


def test_a_growth_that_an_expansion_has_made_is_remembered() -> None:
    """After three growths, no record tells the earlier counts."""
    given = situation(samples=grown(1, 2, 3, 4), cluster={"committed": PROCESSED})
    assert len(found(given)) == 1
    for known in ((1, 2, 3), (3,)):
        generations = Generations(running=NAME, grown_inputs={"shop-customers": known})
        assert found(replace(given, control=ControlState(generations=generations))) == []
