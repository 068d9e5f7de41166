"""A pipeline processes a past interval again, beside the generation that is at work."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.pipeline import LONG
from kafka_rescale.core.processing.backfill import Backfill
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.operations.application.load import load_pipeline_application

from testbed.broker import EmbeddedBroker
from tests.support.processing.inline_jobs import run_all
from tests.support.words_pipeline import write_pipeline

pytestmark = pytest.mark.integration

DAY_MS = 86_400_000
DAY_1 = 1_700_006_400_000
WORDS = (b"one", b"two", b"three", b"four")
PER_DAY = 5


@pytest.fixture
def connection(broker: EmbeddedBroker, unique: str) -> KafkaConnection:
    """A broker with three days of words. One word belongs to the second day and came after the third."""
    connection = KafkaConnection(broker.client_config())
    admin = ClusterAdmin(connection)
    # The pipeline fixes the names of its topics, so first delete what other tests have left.
    admin.delete_topics(["lines", "counted"])
    for topic in ("lines", "counted", f"{unique}-again"):
        admin.ensure_topic(topic, 2, 1, {"retention.ms": "-1"})
    write(connection, ((word, day, n) for day in (0, 1, 2) for n in range(PER_DAY) for word in WORDS))
    write(connection, [(b"one", 1, PER_DAY)])
    return connection


def write(connection: KafkaConnection, words: Iterable[tuple[bytes, int, int]]) -> None:
    """Write words: word, day, and number within the day. Each word always goes to the same partition."""
    producer = Producer(connection.client())
    for word, day, number in words:
        at = DAY_1 + day * DAY_MS + 1000 * number
        producer.produce("lines", word, None, WORDS.index(word) % 2, timestamp=at)
    assert producer.flush(30) == 0


def declared(directory: Path, name: str) -> PipelineApplication:
    return load_pipeline_application(
        write_pipeline(directory, application_id=name, backfill={"outputs": {"counted": f"{name}-again"}})
    )


def backfilled(application: PipelineApplication, connection: KafkaConnection, day: int, **how: Any) -> list[int]:
    """Process a day again, and return how many records each job has processed."""
    start = DAY_1 + day * DAY_MS
    outputs = {"counted": f"{application.application_id}-again"}
    backfill = Backfill(start_ms=start, end_ms=start + DAY_MS, outputs=outputs, **how)
    generation = backfill.generation(application.application_id)
    own = application.model_copy(update={"application_id": generation})
    return [result.records for result in run_all(own, connection, "backfill/1", backfill)]


def counts(connection: KafkaConnection, topic: str) -> dict[bytes, list[int]]:
    """All counts of every word, in order."""
    ends = ClusterAdmin(connection).end_offsets([topic])[topic]
    found: dict[bytes, list[int]] = {}
    for message in read_ranges(connection, topic, {p: (0, end) for p, end in ends.items()}):
        key: Any = message.key()
        value: Any = message.value()
        found.setdefault(key, []).append(LONG.decode(value))
    return found


def picture(connection: KafkaConnection, name: str) -> dict[str, Any]:
    """Everything that the live generation has and has written."""
    admin = ClusterAdmin(connection)
    own = [t for t in admin.list_topics() if t.startswith(f"{name}-") and "backfill" not in t and "again" not in t]
    return {
        "ends": admin.end_offsets([*own, "counted", "lines"], if_present=True),
        "committed": admin.committed(name),
    }


def test_exactly_the_records_of_the_interval_are_processed_on_the_state_before_it(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    application = declared(tmp_path, unique)
    run_all(application, connection, "process/1")
    before = picture(connection, unique)
    assert counts(connection, "counted")[b"two"] == list(range(1, 3 * PER_DAY + 1))

    backfilled(application, connection, 1)
    again = counts(connection, f"{unique}-again")
    second_day = list(range(PER_DAY + 1, 2 * PER_DAY + 1))
    assert {word: again[word] for word in WORDS[1:]} == dict.fromkeys(WORDS[1:], second_day)
    assert again[b"one"] == [*second_day, 2 * PER_DAY + 1], "what came late belongs to its day"
    assert picture(connection, unique) == before, "the live generation is as it was"
    internal = {t for t in ClusterAdmin(connection).list_topics() if t.startswith(f"{unique}-backfill-")}
    assert {t.rpartition("-20231116T000000-")[2].partition("-")[2] for t in internal} == {
        "by-word-repartition",
        "counts-changelog",
    }

    backfilled(application, connection, 1)
    assert counts(connection, f"{unique}-again") == again, "what is through is not processed again"
    write(connection, [(b"two", 1, PER_DAY), (b"two", 2, PER_DAY)])
    backfilled(application, connection, 1)
    assert counts(connection, f"{unique}-again")[b"two"] == [*second_day, 2 * PER_DAY + 1]


def test_an_interval_that_the_log_no_longer_has_is_refused(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    application = declared(tmp_path, unique)
    ClusterAdmin(connection).delete_records({"lines": {0: 3}})
    with pytest.raises(Refused, match=r"input lines-0.*begins at offset 3.*every record since its beginning"):
        backfilled(application, connection, 1)
    with pytest.raises(Refused, match="every record since 2023-11-15T00:00:00"):
        backfilled(application, connection, 1, history_ms=DAY_MS)
    names = ClusterAdmin(connection).list_topics()
    assert not [t for t in names if t.startswith(f"{unique}-backfill-")], "nothing was touched"
    backfilled(application, connection, 2, history_ms=DAY_MS)
    assert counts(connection, f"{unique}-again")[b"two"] == list(range(PER_DAY + 1, 2 * PER_DAY + 1))
