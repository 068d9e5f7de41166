"""Preflight of empty keys. librdkafka's default partitioner spreads them as it spreads missing ones."""

from __future__ import annotations

from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.core.preflight.check import messages
from kafka_rescale.core.preflight.situation import Situation

from tests.support.situations import CUSTOMERS_CHANGELOG, INPUTS, STORES, found, misplaced, samples, situation
from tests.support.small_application import START_MS

TOPIC = "shop-customers"
REASON = "librdkafka's default partitioner spreads empty keys"


def empty(topic: str) -> list[Sample]:
    """A record with an empty key in each partition."""
    return [Sample(topic, partition, 100 + partition, b"", START_MS) for partition in range(4)]


def spread(partitioner: str = "crc32", *, of_state: bool = False) -> Situation:
    """An input of librdkafka's producers and its table, with empty keys in every partition of one of them."""
    by_crc32 = {topic: misplaced(topic)[topic] for topic in (TOPIC, CUSTOMERS_CHANGELOG)}
    with_empty = CUSTOMERS_CHANGELOG if of_state else TOPIC
    by_crc32[with_empty] = [*by_crc32[with_empty], *empty(with_empty)]
    return situation(
        samples=samples(**by_crc32),
        inputs=[INPUTS[0], {**INPUTS[1], "partitioner": partitioner}],
        stores=[{**STORES[0], "partitioner": "crc32"}, *STORES[1:]],
    )


def about(given: Situation, topic: str) -> list[str]:
    """The findings about where the keys of a topic are."""
    return [text for text in found(given) if text.startswith(f"topic {topic!r}: found") and "elsewhere" in text]


def test_in_an_input_they_may_lie_anywhere_and_are_said() -> None:
    assert about(spread(), TOPIC) == about(spread(), CUSTOMERS_CHANGELOG) == []
    (said,) = [text for text in messages(spread()) if REASON in text]
    assert said == (
        "shop-customers: an empty key in 4 sampled records, first at partition 0, offset 100. librdkafka's "
        "default partitioner spreads empty keys over all partitions. If the program keeps state of the empty key, "
        "that state can't be copied."
    )


def test_they_contradict_no_hint_at_librdkafka() -> None:
    (text,) = about(spread("murmur2"), TOPIC)
    assert text.endswith(
        "All of them fit crc32, the default of librdkafka producers: declare `partitioner: crc32`."
    )


def test_state_of_the_empty_key_is_refused_with_the_reason() -> None:
    (text,) = about(spread(of_state=True), CUSTOMERS_CHANGELOG)
    assert "found 3 of 28 sampled records elsewhere" in text
    assert REASON in text
