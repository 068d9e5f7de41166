"""Preflight of records without a time: no copy and no bridge could write them as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.core.preflight.targets import absent_times

from tests.support.situations import INPUTS, found, samples, situation

REPARTITIONED = [INPUTS[0], {**INPUTS[1], "policy": "repartitioned"}]


@pytest.mark.parametrize("timestamp", [0, -1])
@pytest.mark.parametrize("topic", ["shop-totals-changelog", "shop-by-customer-repartition"])
def test_records_whose_time_can_not_be_written_are_found(topic: str, timestamp: int) -> None:
    spoilt = [replace(s, timestamp_ms=timestamp) if s.topic == topic else s for s in samples()]
    [first, *_] = [s for s in spoilt if s.topic == topic]
    assert found(situation(samples=tuple(spoilt))) == [
        f"topic {topic!r}: found 24 of 24 sampled records with timestamp 0 or none, first at partition "
        f"{first.partition}, offset 0; expected timestamps of at least 1 ms: the client library would write the "
        "present time instead. Delete or update these entries in the application, so that they get real "
        "timestamps. When compaction has removed the old records, trigger again."
    ]


def test_an_input_whose_newest_records_have_no_time_is_not_bridged() -> None:
    given = situation(inputs=REPARTITIONED)
    topic = given.plan.bridges[0].source
    logs = [Sample(topic, partition, at, b"k", 1) for partition in range(2) for at in range(4)]

    def told(*spoilt: tuple[int, int]) -> list[str]:
        taken = [replace(s, timestamp_ms=0) if (s.partition, s.offset) in spoilt else s for s in logs]
        others = [s for s in given.samples if s.topic != topic]
        return [str(finding) for finding in absent_times(replace(given, samples=(*others, *taken)))]

    [text] = told((0, 0), (1, 2))
    assert text == (
        f"topic {topic!r}: found 1 of 4 sampled records with timestamp 0 or none, first at partition 1, offset 2; "
        "expected timestamps of at least 1 ms: the client library would write the present time instead. After the "
        "promotion, the bridge would stop at the first such record. Let every producer write real timestamps. "
        "When newer records lie above the old ones, or the old ones are deleted, trigger again."
    )
    assert told((0, 0), (0, 1), (1, 0)) == [], "the application has processed them, so no bridge copies them"
    logs = [Sample(topic, 0, 0, b"k", 1)]
    assert len(told((0, 0))) == 1
