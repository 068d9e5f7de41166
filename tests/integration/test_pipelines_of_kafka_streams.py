"""Pipelines against Kafka Streams itself: the same programs, the same records, in ``TopologyTestDriver``."""

from __future__ import annotations

import random

import pytest

from tests.support.pipeline_programs import PROGRAMS, built
from tests.support.pipelines import Piped, PipelineDriver, Ran, run_by_kafka_streams

pytestmark = pytest.mark.integration

RECORDS = 300
SECOND = 1000


def records(program: str) -> list[Piped]:
    """Records of a program's inputs: few keys, some without one, tombstones, times that go on with steps back."""
    chance = random.Random(program)
    topics = built(program).topology.inputs
    now, found = 1_600_000_000_000, []
    for number in range(RECORDS):
        now += chance.choice((0, 1, SECOND, 2 * SECOND, 5 * SECOND))
        late = chance.choice((0, 0, 0, 1, SECOND, 5 * SECOND, 20 * SECOND, 60 * SECOND))
        key = chance.choice((None, b"k", b"kk", b"k\0", b"l", b"m", b"m", b"m"))
        value = chance.choice((None, b"a", b"ab", b"b", b"bc", b"cc", b"zz"))
        topic = chance.choice(topics)
        found.append(Piped(topic, key, value, now - late, str(number).encode()))
    return found


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """All programs, run by Kafka Streams in one JVM."""
    return run_by_kafka_streams({name: records(name) for name in PROGRAMS}, tmp_path_factory.mktemp("state"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_pipeline_describes_itself_as_kafka_streams_describes_it(ran: dict[str, Ran], name: str) -> None:
    assert built(name).describe() == ran[name].describe


@pytest.mark.parametrize("name", PROGRAMS)
def test_outputs_and_changelogs_are_those_of_kafka_streams(ran: dict[str, Ran], name: str) -> None:
    found = PipelineDriver(built(name)).pipe_all(records(name))
    assert {topic: len(rows) for topic, rows in found.items()} == {
        topic: len(rows) for topic, rows in ran[name].written.items()
    }
    for topic, rows in ran[name].written.items():
        assert found[topic] == rows, topic
