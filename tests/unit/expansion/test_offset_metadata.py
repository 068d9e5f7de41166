"""Kafka Streams' metadata beside its offsets is copied: unchanged, or the earliest one of several partitions."""

from __future__ import annotations

import base64

import pytest
from kafka_rescale.core.application.generation_names import blue_names
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.expansion.offset_metadata import OffsetMetadata, parents, start_metadata
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.operations.application.load import topology_of

from tests.support.plans import in_place_plan
from tests.unit.plan.test_repartitioned import plan as repartitioned_plan

EARLY = OffsetMetadata(1_000, {"hourly": 500, "daily": 90})
LATE = OffsetMetadata(2_000, {"hourly": 700})
TEXTS = {p: OffsetMetadata(p).encode() for p in range(4)}


class TestText:
    def test_it_is_version_time_and_marks_in_base64(self) -> None:
        encoded = base64.b64decode(OffsetMetadata(7, {"a": 9}).encode())
        assert encoded.hex() == "02" + "0000000000000007" + "00000001" + "00000001" + "61" + "0000000000000009"
        assert base64.b64decode(OffsetMetadata(7).encode()).hex() == "02" + "0000000000000007"

    @pytest.mark.parametrize("known", [EARLY, LATE, OffsetMetadata(-1), OffsetMetadata(3, {"übrig": -1})])
    def test_it_is_read_as_it_is_written(self, known: OffsetMetadata) -> None:
        assert OffsetMetadata.decode(known.encode()) == known

    def test_the_time_alone_is_how_older_versions_write_it(self) -> None:
        text = base64.b64encode(b"\x01" + (5).to_bytes(8, "big")).decode()
        assert OffsetMetadata.decode(text) == OffsetMetadata(5)

    @pytest.mark.parametrize(
        "text", ["", "ü", "x", base64.b64encode(b"\x03" + bytes(8)).decode(), EARLY.encode()[:-8]]
    )
    def test_whatever_else_is_there_is_not_understood(self, text: str) -> None:
        assert OffsetMetadata.decode(text) is None


@pytest.mark.parametrize(
    ("partitioner", "current", "target", "expected"),
    [
        ("murmur2", 2, 4, [[0], [1], [0], [1]]),
        ("crc32", 4, 2, [[0, 2], [1, 3]]),
        ("murmur2", 2, 3, [[0, 1]] * 3),
        ("module:function", 2, 4, [[0, 1]] * 4),
        ("linear-hashing:3", 4, 8, [[0], [1], [2], [3], [1], [2], [0], [1]]),
        ("linear-hashing:3", 8, 4, [list(range(8))] * 4),
        ("static:module:function", 2, 3, [[0], [1], []]),
        ("module:function", 2, 2, [[0], [1]]),
    ],
)
def test_a_partition_gets_the_keys_of_these(
    partitioner: str, current: int, target: int, expected: list[list[int]]
) -> None:
    assert [list(parents(partitioner, current, target, p)) for p in range(target)] == expected


class TestStart:
    @staticmethod
    def of(plan: Plan, texts: dict[int, str]) -> dict[int, str]:
        """The metadata for green's partitions of its only input."""
        (read,) = plan.inputs
        return start_metadata(plan, {read.topic: texts}).get(read.green_topic, {})

    def test_with_a_multiple_each_has_that_of_the_one_it_comes_from(self) -> None:
        assert self.of(repartitioned_plan(4, 8), TEXTS) == {p: TEXTS[p % 4] for p in range(8)}

    def test_what_is_no_multiple_has_the_earliest_of_all(self) -> None:
        texts = {0: EARLY.encode(), 1: LATE.encode()}
        expected = OffsetMetadata(1_000, {"hourly": 500}).encode()
        assert self.of(repartitioned_plan(2, 3), texts) == dict.fromkeys(range(3), expected)

    @pytest.mark.parametrize("other", ["", "somebody's"])
    def test_nobody_knows_how_far_one_without_has_come(self, other: str) -> None:
        assert self.of(repartitioned_plan(2, 3), {0: EARLY.encode(), 1: other}) == {}

    def test_of_an_input_whose_keys_do_not_matter_new_partitions_have_none(self) -> None:
        plan = repartitioned_plan(
            4,
            8,
            inputs=[{"topic": "orders", "policy": "unkeyed"}],
            stores=[],
            subtopologies=[{"sources": ["orders"], "stores": [], "sinks": ["totals"]}],
            lifecycle=LIFECYCLE,
        )
        assert self.of(plan, TEXTS) == TEXTS

    def test_repartition_topics_have_theirs(self) -> None:
        plan = in_place_plan(4, 8)
        (move, *_) = plan.repartitions
        assert start_metadata(plan, {move.source: TEXTS})[move.target] == {p: TEXTS[p % 4] for p in range(8)}

    @pytest.mark.parametrize("prefix", [None, "behind"])
    @pytest.mark.parametrize(("current", "target"), [(4, 8), (2, 3), (4, 4)])
    def test_marks_have_the_names_of_the_stores_in_green(
        self, prefix: str | None, current: int, target: int
    ) -> None:
        texts = {p: OffsetMetadata(5, {"hourly": 7, "daily": 8, "in-memory": 9}).encode() for p in range(current)}
        expected = OffsetMetadata(5, {"daily": 7, "per-day": 8, "in-memory": 9}).encode()
        plan = windowed_plan(current, target, prefix, {"hourly": "daily", "daily": "per-day"})
        assert self.of(plan, texts) == dict.fromkeys(range(target), expected)

    def test_marks_of_the_records_in_flight_have_these_names_too(self) -> None:
        plan = windowed_plan(4, 8, None, {"hourly": "KSTREAM-5"})
        (move,) = plan.repartitions
        marked = {p: OffsetMetadata(5, {"hourly": p}).encode() for p in range(4)}
        renamed = {p: OffsetMetadata(5, {"KSTREAM-5": p % 4}).encode() for p in range(8)}
        assert start_metadata(plan, {move.source: marked})[move.target] == renamed

    @pytest.mark.parametrize("text", ["somebody's", base64.b64encode(b"\x01" + bytes(8)).decode()])
    def test_a_text_without_marks_stays_as_it_is(self, text: str) -> None:
        plan = windowed_plan(4, 4, None, {"hourly": "KSTREAM-5"})
        assert self.of(plan, dict.fromkeys(range(4), text)) == dict.fromkeys(range(4), text)

    def test_in_place_no_store_is_renamed(self) -> None:
        assert in_place_plan(4, 8, running="orders-app-g2").renamed_stores == {}


def windowed_plan(current: int, target: int, prefix: str | None, green_names: dict[str, str]) -> Plan:
    """The plan of the third generation of an application with two windowed stores."""
    application = Application.model_validate(
        {
            "application_id": "windows",
            "partitions": target,
            "inputs": [{"topic": "orders", "policy": "paused"}],
            "subtopologies": [
                {"sources": ["orders"], "sinks": ["by-id-repartition"]},
                {"sources": ["by-id-repartition"], "stores": ["hourly", "daily"]},
            ],
            "stores": [{"name": name, "type": "timestamped-window"} for name in ("hourly", "daily")],
            "lifecycle": LIFECYCLE,
            "internal_topic_prefix": prefix,
            "green_names": green_names,
        }
    )
    topology, names = topology_of(application), blue_names(application, "windows-g2")
    return build_plan(
        application,
        topology,
        blue="windows-g2",
        generation=3,
        current=dict.fromkeys(["orders", *names.all_of(topology)], current),
        target=target,
    )


LIFECYCLE = {name: "true {application_id}" for name in ("start", "stop", "status")} | {"type": "shell"}
