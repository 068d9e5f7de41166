"""A producer that does not know of the growth is found, before the promotion and after it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message, Producer
from kafka_rescale.cli.exit_codes import PASSED, REFUSED
from kafka_rescale.cli.main import main
from kafka_rescale.core.control.journal import Captured, Journal, PartitionOffsets, Phase
from kafka_rescale.core.errors import InvalidInput, Outage, Refused, UnsafeState
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.core.verify.misrouted import InputReport, refuse_misrouted
from kafka_rescale.core.verify.report import Report
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.reading.misrouted import look_for_misrouted
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.cutover.promotion import assert_held
from kafka_rescale.operations.cutover.quiesce import drain
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.verify.accept import accept

from tests.support.ordered import IGNORANT
from tests.support.page.page_contents import complete
from tests.support.small_application import application, topic_configs, write

pytestmark = pytest.mark.integration


@pytest.fixture
def connection(client: dict[str, str]) -> KafkaConnection:
    return KafkaConnection(client)


def journal_of(connection: KafkaConnection, name: str, fence: dict[int, int]) -> Journal:
    """An expansion from 4 to 8 whose paused input is ``<name>-customers``."""
    declared = application(name)
    counts = dict.fromkeys(topic_configs(name), 4)
    plan = build_plan(declared, topology_of(declared), blue=name, generation=2, current=counts, target=8)
    topic = f"{name}-customers"
    return Journal(
        plan=plan,
        phase=Phase.STARTED,
        captured=Captured(committed={topic: fence}),
        green_start={topic: {p: fence.get(p, 0) for p in range(8)}},
    )


def send(producer: Producer, topic: str, count: int) -> None:
    for number in range(count):
        producer.produce(topic, b"v", b"customer-%d" % number)
    assert producer.flush(30) == 0


def grown(connection: KafkaConnection, name: str) -> tuple[str, Producer, Journal]:
    """Return a grown input, a producer that has not noticed the growth, and the expansion."""
    admin, topic = ClusterAdmin(connection), f"{name}-customers"
    admin.ensure_topic(topic, 4, 1, {})
    producer = Producer(connection.client(**IGNORANT))
    send(producer, topic, 100)
    journal = journal_of(connection, name, admin.end_offsets([topic])[topic])
    admin.grow_topic(topic, 8)
    return topic, producer, journal


def test_a_producer_with_old_metadata_is_caught_after_the_growth(connection: KafkaConnection, unique: str) -> None:
    topic, stale, journal = grown(connection, unique)
    fresh = Producer(connection.client(partitioner="murmur2_random"))
    send(fresh, topic, 200)
    (sound,) = look_for_misrouted(connection, journal)
    assert (sound.records, sound.misrouted) == (200, 0)

    send(stale, topic, 200)
    (report,) = look_for_misrouted(connection, journal)
    assert report.records == 400
    assert report.misrouted > 50
    with pytest.raises(UnsafeState, match="in partitions of the old count"):
        refuse_misrouted([report])


def test_a_producer_that_was_not_held_stops_the_cutover(connection: KafkaConnection, unique: str) -> None:
    admin, topic = ClusterAdmin(connection), f"{unique}-customers"
    admin.ensure_topic(topic, 4, 1, {})
    producer = Producer(connection.client(**IGNORANT))
    send(producer, topic, 20)
    journal = journal_of(connection, unique, admin.end_offsets([topic])[topic])
    rescale = Rescale.open(application(unique), connection, "shell/test")
    assert_held(rescale, journal)
    send(producer, topic, 1)
    with pytest.raises(UnsafeState, match="a record behind the fence"):
        assert_held(rescale, journal)


def open_transaction(connection: KafkaConnection, topic: str) -> Producer:
    """Open a transaction as a killed producer leaves it. Its coordinator waits for a quarter of an hour."""
    settings = {"transactional.id": topic, "transaction.timeout.ms": 900_000, "message.timeout.ms": 60_000}
    producer = Producer(connection.client(**settings))
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"v", b"k", 1)
    assert producer.flush(30) == 0
    return producer


def test_what_an_open_transaction_hides_stops_the_cutover(connection: KafkaConnection, unique: str) -> None:
    """For a read_committed reader, the log ends before the transaction. It does not see later records."""
    admin, topic = ClusterAdmin(connection), f"{unique}-customers"
    admin.ensure_topic(topic, 4, 1, {})
    send(Producer(connection.client(**IGNORANT)), topic, 20)
    journal = journal_of(connection, unique, admin.end_offsets([topic])[topic])
    admin.commit(unique, admin.end_offsets([topic]))
    rescale = Rescale.open(application(unique), connection, "shell/test")
    drain(rescale, journal.plan, seconds=30)
    transaction = open_transaction(connection, topic)
    send(Producer(connection.client(**IGNORANT)), topic, 20)
    admin.commit(unique, admin.end_offsets([topic]))
    with pytest.raises(Outage, match=f"transaction '{topic}' .* on {topic}-1 since offset"):
        drain(rescale, journal.plan, seconds=1)
    journal = journal_of(connection, unique, admin.end_offsets([topic])[topic])
    with pytest.raises(UnsafeState, match=r"an open transaction, .* in partition 1"):
        assert_held(rescale, journal)
    transaction.abort_transaction(30)


def loses_its_beginning(monkeypatch: pytest.MonkeyPatch, where: str, before: PartitionOffsets) -> None:
    """Let retention delete records before some offsets, just before records are read.

    The begins of the partitions were asked for before that.
    """

    def read(connection: KafkaConnection, *arguments: Any, **options: Any) -> Iterator[Message]:
        ClusterAdmin(connection).delete_records(before)
        return read_ranges(connection, *arguments, **options)

    monkeypatch.setattr(f"kafka_rescale.{where}.read_ranges", read)


def test_what_retention_deletes_meanwhile_fails_no_look_at_the_rest(
    connection: KafkaConnection, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, stale, journal = grown(connection, unique)
    send(stale, topic, 200)
    (whole,) = look_for_misrouted(connection, journal)
    deleted = {p: journal.green_start[topic][p] + 10 for p in range(4)}
    loses_its_beginning(monkeypatch, "kafka.reading.misrouted", {topic: deleted})
    (rest,) = look_for_misrouted(connection, journal)
    assert rest.records == whole.records - 40 > 0
    assert 0 < rest.misrouted < whole.misrouted


def test_what_retention_deletes_meanwhile_stops_no_cutover_and_hides_nothing_else(
    connection: KafkaConnection, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin, topic = ClusterAdmin(connection), f"{unique}-customers"
    admin.ensure_topic(topic, 4, 1, {})
    producer = Producer(connection.client(**IGNORANT))
    send(producer, topic, 20)
    fence = admin.end_offsets([topic])[topic]
    journal = journal_of(connection, unique, fence)
    rescale = Rescale.open(application(unique), connection, "shell/test")
    for _ in range(2):
        producer.produce(topic, b"v", b"k", 1)
    assert producer.flush(30) == 0
    with monkeypatch.context() as retention:
        loses_its_beginning(retention, "operations.cutover.promotion", {topic: {1: fence[1] + 1}})
        with pytest.raises(UnsafeState, match=f"behind the fence, in partition 1 at offset {fence[1] + 1}"):
            assert_held(rescale, journal)
    loses_its_beginning(monkeypatch, "operations.cutover.promotion", {topic: {1: fence[1] + 2}})
    assert_held(rescale, journal)


@pytest.fixture
def stale(connection: KafkaConnection, unique: str) -> Producer:
    """A producer with old metadata that has written since the growth. The control topic knows of the growth."""
    topic, producer, journal = grown(connection, unique)
    ControlTopic(connection, unique).update(lambda _: {"journal": journal})
    send(producer, topic, 20)
    return producer


def looked(connection: KafkaConnection, name: str) -> InputReport:
    """Return the report that verify and the callback make."""
    state = ControlTopic(connection, name).read()
    assert state.journal is not None
    (report,) = look_for_misrouted(connection, state.journal, state.acceptances)
    return report


def test_what_was_accepted_fails_nothing_and_what_comes_later_does(
    connection: KafkaConnection, unique: str, stale: Producer
) -> None:
    declared, topic = application(unique), f"{unique}-customers"
    found = looked(connection, unique)
    assert found.misrouted > 5
    names = [str(finding) for finding in found.findings]
    accepted = accept(declared, connection, findings=names, by="ada", reason="replayed by hand")
    assert sum(each.records for each in accepted) == found.misrouted
    # If another person accepts them again, the acceptance stays as it was.
    again = accept(declared, connection, findings=names, by="bob", reason="me too")
    assert again == accepted
    after = looked(connection, unique)
    assert (after.misrouted, after.accepted) == (0, found.misrouted)
    assert {each.by for each in again} == {"ada"}

    send(stale, topic, 20)
    later = looked(connection, unique)
    assert (later.misrouted, later.accepted) == (found.misrouted, found.misrouted)
    with pytest.raises(UnsafeState, match="in partitions of the old count"):
        refuse_misrouted([later])


@pytest.mark.usefixtures("stale")
def test_nobody_can_accept_more_than_what_was_found(connection: KafkaConnection, unique: str) -> None:
    declared, found = application(unique), looked(connection, unique)
    exact = found.findings[0]
    for wrong in (
        exact._replace(last=exact.last + 1),
        exact._replace(first=0),
        exact._replace(partition=7),
        exact._replace(topic=f"{unique}-orders"),
    ):
        with pytest.raises(Refused, match=f"found only {exact}"):
            accept(declared, connection, findings=[str(exact), str(wrong)], by="ada", reason="why not")
    for findings, reason in (([str(exact)], " "), ([], "why not")):
        with pytest.raises(InvalidInput):
            accept(declared, connection, findings=findings, by="ada", reason=reason)
    with pytest.raises(Refused, match="found no finding of this kind"):
        accept(declared, connection, findings=["totals@0123456789ab"], by="ada", reason="nobody has compared it")
    assert ControlTopic(connection, unique).read().acceptances.accepted == ()


@pytest.mark.usefixtures("stale")
def test_what_was_compared_is_accepted_as_the_last_report_names_it(
    connection: KafkaConnection, unique: str
) -> None:
    control = ControlTopic(connection, unique)
    journal = control.read().journal
    assert journal is not None
    found = Report.model_validate(complete("orders", passed=False).control.report)
    report = found.model_copy(update={"plan": journal.plan.fingerprint, "promotion": journal.promotion})
    names = list(report.compared)
    control.update(lambda _: {"report": report})
    with pytest.raises(Refused, match=f"found only {', '.join(names)}"):
        accept(application(unique), connection, findings=["totals@0123456789ab"], by="ada", reason="no other")
    accept(application(unique), connection, findings=names, by="ada", reason="derived data, rebuilt nightly")
    assert report.concluded(control.read().acceptances).passed
    another = journal.model_copy(update={"attempt": journal.attempt + 1})
    control.update(lambda _: {"journal": another})
    with pytest.raises(Refused, match="found no finding of this kind"):
        accept(application(unique), connection, findings=names, by="ada", reason="a report of another promotion")


@pytest.mark.usefixtures("stale")
def test_there_is_nothing_to_accept_before_the_start_nor_after_the_end(
    connection: KafkaConnection, unique: str
) -> None:
    control, exact = ControlTopic(connection, unique), str(looked(connection, unique).findings[0])
    journal = control.read().journal
    assert journal is not None
    for phase in (Phase.WARMING, Phase.PROMOTED, Phase.COMPLETE):
        control.update(lambda _, phase=phase: {"journal": journal.model_copy(update={"phase": phase})})
        with pytest.raises(Refused, match=f"an expansion in phase {phase}; expected .*phase started"):
            accept(application(unique), connection, findings=[exact], by="ada", reason="why not")


@pytest.mark.usefixtures("stale")
def test_it_is_accepted_from_a_shell(
    connection: KafkaConnection, unique: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "kafka.json"
    config.write_text(json.dumps(dict(connection.config)))
    options = [str(write(tmp_path, unique)), "--config", str(config), "--reason", "replayed by hand"]
    names = [str(finding) for finding in looked(connection, unique).findings]
    findings = [option for name in names for option in ("--finding", name)]
    assert main(["accept", *options, *findings]) == PASSED
    shown = capsys.readouterr().out
    assert all(name in shown for name in names)
    assert ": replayed by hand" in shown
    assert looked(connection, unique).misrouted == 0
    assert main(["accept", *options, "--finding", f"{unique}-customers-0:0-999999"]) == REFUSED
    assert "expected a finding by exactly this name" in capsys.readouterr().err
