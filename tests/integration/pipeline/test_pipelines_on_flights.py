"""Pipelines and Kafka Streams have equal outputs and equal changelogs for the same real input on a real broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.broker import EmbeddedBroker
from tests.support.processing.flight_programs import PROGRAMS
from tests.support.processing.flight_runs import FlightRun, Logged, create_inputs, kafka_streams, recent_flights

# In `make test`, test_pipelines_of_kafka_streams.py compares every operation with Kafka Streams' own, without a
# broker, and test_stream_task.py has a task of a pipeline on a broker.
pytestmark = [pytest.mark.integration, pytest.mark.slow]

FLIGHTS = 600
Left = dict[str, list[Logged]]


@dataclass(frozen=True)
class Both:
    """The results of a program in Kafka Streams and in this runtime."""

    theirs: Left
    ours: Left


def differences(theirs: Left, ours: Left) -> list[str]:
    """Return how the topics of two runs differ. It is empty if they are equal.

    A changelog is compared per partition and in order, because one task writes a partition. An output is compared
    per key, because several tasks write to a partition, each at its own pace. For records without a key, only the
    number of equal records is compared.
    """
    found = []
    for topic in sorted({*theirs, *ours}):
        one, two = theirs.get(topic, []), ours.get(topic, [])
        each: Callable[[Logged], object] = (
            (lambda row: row.partition) if topic.endswith("-changelog") else (lambda row: (row.partition, row.key))
        )
        for at in sorted({*map(each, one), *map(each, two)}, key=repr):
            first, second = ([row for row in rows if each(row) == at] for rows in (one, two))
            keyless = isinstance(at, tuple) and at[1] is None
            if keyless:
                continue
            if first != second:
                where = next(
                    (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), "the shorter one"
                )
                found.append(f"{topic} {at}: {len(first)} and {len(second)} records differ from {where} on")
        of_none = [Counter(r._replace(partition=0) for r in rows if r.key is None) for rows in (one, two)]
        if not topic.endswith("-changelog") and of_none[0] != of_none[1]:
            found.append(f"{topic}: records without a key differ")
    return found


@pytest.fixture(scope="module")
def ran(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Both]:
    """Run every program in both. This runtime makes two runs, between which it keeps only files and offsets."""
    connection, directory = KafkaConnection(broker.client_config()), tmp_path_factory.mktemp("flights")
    dataset = recent_flights(FLIGHTS)
    inputs = f"real-{directory.name}"
    create_inputs(connection, inputs, dataset)
    middle_ms = int(dataset.flights["timestamp_ms"].median())
    theirs = {p: FlightRun(connection, inputs, f"{inputs}-java-{p}", p) for p in PROGRAMS}
    ours = {p: FlightRun(connection, inputs, f"{inputs}-spark-{p}", p) for p in PROGRAMS}
    for run in (*theirs.values(), *ours.values()):
        run.create_outputs()
    with kafka_streams(theirs, connection.servers, directory), pytest.MonkeyPatch.context() as patch:
        for program, run in ours.items():
            first = run.run(directory / "ours", "first", patch, middle_ms)
            second = run.run(directory / "ours", "second", patch, None)
            assert all(sum(done.records for done in each) > FLIGHTS // 4 for each in (first, second)), program
            assert not any(done.full_restores for done in second if done.records), "state comes from files"
    return {p: Both(theirs[p].left(), ours[p].left()) for p in PROGRAMS}


@pytest.mark.parametrize("program", PROGRAMS)
def test_outputs_and_changelogs_are_those_of_kafka_streams(ran: dict[str, Both], program: str) -> None:
    assert all(ran[program].theirs.values()), "every output and changelog has records"
    assert differences(ran[program].theirs, ran[program].ours) == []


def test_changelogs_of_join_windows_have_the_headers_that_kafka_streams_gives_them(ran: dict[str, Both]) -> None:
    logged = {t: rows for t, rows in ran["stream_stream_joins"].ours.items() if "JOINTHIS" in t}
    assert len(logged) == 2
    assert all(row.headers and row.headers[0][0] == "number" for rows in logged.values() for row in rows)


@pytest.mark.parametrize("topic", ["miles", "miles-changelog"])
@pytest.mark.parametrize("change", ["timestamp", "value", "order", "header", "partition", "lost", "twice"])
def test_a_difference_of_one_record_is_found(ran: dict[str, Both], topic: str, change: str) -> None:
    both = ran["aggregates"]
    rows = both.ours[topic]
    at = max(i for i, row in enumerate(rows) if row.key == b"UA")
    earlier = max(i for i, row in enumerate(rows[:at]) if row.key == b"UA")
    one = rows[at]
    changed = {
        "timestamp": [one._replace(timestamp_ms=one.timestamp_ms + 1)],
        "value": [one._replace(value=b"0,0")],
        "header": [one._replace(headers=(("number", b"-1"),))],
        "partition": [one._replace(partition=one.partition + 1)],
        "order": [rows[earlier]],
        "lost": [],
        "twice": [one, one],
    }[change]
    spoilt = [*rows[:at], *changed, *rows[at + 1 :]]
    if change == "order":
        spoilt[earlier] = one
    assert differences(both.theirs, {**both.ours, topic: spoilt}) != []
