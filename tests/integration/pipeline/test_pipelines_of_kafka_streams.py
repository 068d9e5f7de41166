"""Pipelines give the results of Kafka Streams, for the same programs and records in ``TopologyTestDriver``."""

from __future__ import annotations

import pytest

from tests.support.processing.pipeline_driver import Piped, PipelineDriver
from tests.support.processing.pipeline_oracle import Ran, run_by_kafka_streams
from tests.support.processing.pipeline_programs import PROGRAMS, built, program_records

pytestmark = pytest.mark.integration

RECORDS = 300


def records(program: str) -> list[Piped]:
    return program_records(program, RECORDS)


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
    assert set(built(name).topology.outputs) <= set(found)


@pytest.mark.parametrize("change", ["timestamp", "value", "order", "header"])
def test_a_difference_of_one_record_is_found(ran: dict[str, Ran], change: str) -> None:
    (first, second, *rest) = ran["count"].written["out"]
    changed = {
        "timestamp": [first._replace(timestamp=first.timestamp + 1), second, *rest],
        "value": [first._replace(value=None), second, *rest],
        "order": [second, first, *rest],
        "header": [first._replace(headers=()), second, *rest],
    }
    found = PipelineDriver(built("count")).pipe_all(records("count"))
    assert found["out"] == ran["count"].written["out"]
    assert found["out"] != changed[change]
