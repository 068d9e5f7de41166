"""The record cache of pipelines writes the same records as that of Kafka Streams, by the same evictions."""

from __future__ import annotations

import pytest

from tests.support.processing.pipeline_driver import PipelineDriver
from tests.support.processing.pipeline_oracle import Ran, run_by_kafka_streams
from tests.support.processing.pipeline_programs import PROGRAMS, built, program_records

pytestmark = pytest.mark.integration

RECORDS, COMMIT = 300, 40
ROOMY, NARROW = 10_485_760, 2_000
"""Sizes of the cache. ROOMY is Kafka Streams' default: nothing is evicted here.

NARROW: each store evicts all the time.
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Ran]]:
    """Run all programs in Kafka Streams with each size of the cache."""
    records = {name: program_records(name, RECORDS) for name in PROGRAMS}
    return {
        size: run_by_kafka_streams(records, tmp_path_factory.mktemp("state"), cache=size, commit=COMMIT)
        for size in (ROOMY, NARROW)
    }


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("size", [ROOMY, NARROW])
def test_outputs_and_changelogs_are_those_of_kafka_streams_with_the_same_cache(
    ran: dict[int, dict[str, Ran]], name: str, size: int
) -> None:
    found = PipelineDriver(built(name), size).pipe_all(program_records(name, RECORDS), COMMIT)
    expected = ran[size][name].written
    assert {topic: len(rows) for topic, rows in found.items()} == {t: len(rows) for t, rows in expected.items()}
    for topic, rows in expected.items():
        assert found[topic] == rows, topic
