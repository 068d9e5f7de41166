"""An application whose own topics grow while it is stopped: nothing is lost or doubled, and little is copied."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import Outage, Refused
from kafka_rescale.core.formats.changelog_formats import format_of
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.copy.marks import read_positions
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.reading.committed import copy_consumer
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.operations.cutover.cutover import run_cutover
from kafka_rescale.operations.expansion.retire import retire

from testbed.broker import EmbeddedBroker
from testbed.expansion import ROOT, Expansion
from testbed.processes import wait_until
from tests.support.kills import kill_session
from tests.support.live_expansion import live_application
from tests.support.ordered import NAME
from tests.support.ordered_in_place import STATIC, OrderedInPlace
from tests.support.verify.spark_of_tests import run_here

pytestmark = pytest.mark.integration

SHELL = {"type": "shell", **{c: f"jvm/demo/run.sh {c} {{application_id}}" for c in ("start", "stop", "status")}}
IN_PLACE = {"mode": "in_place", "lifecycle": SHELL}
STOPPED = 3


def journal_of(expansion: Expansion) -> Journal:
    journal = expansion.state().journal
    assert journal is not None
    return journal


def moving(expansion: Expansion, move: Move, journal: Journal) -> int:
    """Count the changelog records of the application whose keys now belong to another partition."""
    assert journal.captured is not None
    ends = journal.captured.changelog_ends[move.source]
    rule, form = partitioner_named(move.partitioner, move.key_topic), format_of(move.store_type)
    count = 0
    for record in read_ranges(expansion.connection, move.source, {p: (0, end) for p, end in ends.items()}):
        key, partition = form.partitioning_key(record.key() or b""), record.partition()
        was, now = rule.partition(key, move.source_partitions), rule.partition(key, move.target_partitions)
        count += was == partition != now
    return count


def copied(expansion: Expansion) -> int:
    """Return how many changelog records have been copied, as the marks beside the positions say."""
    plan = journal_of(expansion).plan
    consumer = copy_consumer(expansion.connection, plan.copy_group)
    try:
        positions = read_positions(consumer, [u.source for u in units_of(plan.changelogs)])
    finally:
        consumer.close()
    return sum(p.mark.records for p in positions.values())


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_live_application_ends_as_if_it_had_never_been_grown_and_keeps_its_local_state(
    guarantee: str, tmp_path: Path
) -> None:
    with live_application(tmp_path, rate=12, guarantee=guarantee, changes=IN_PLACE) as (stack, expansion):
        timings = expansion.run()
        journal = journal_of(expansion)
        in_sight = {m.source: moving(expansion, m, journal) for m in journal.plan.changelogs}
        assert copied(expansion) == sum(in_sight.values())
        assert min(in_sight.values()) > 0
        stack.finish_replay()
        stack.await_equal("flights")
        restored = restored_of((stack.directory / "flights.log").read_text())
    print(f"{guarantee}: {timings}; copied {in_sight}; restored {restored}")
    assert journal.captured is not None
    for topic, ends in journal.captured.changelog_ends.items():
        for partition, end in journal.green_ends[topic].items():
            assert restored[topic, partition] <= end - ends.get(partition, 0), (topic, partition)
        new = [p for p in journal.green_ends[topic] if p not in ends]
        assert sum(restored[topic, p] for p in new) > 0


def restored_of(log: str) -> Mapping[tuple[str, int], int]:
    """Return how many records the application has restored per changelog partition.

    Before the growth it restores nothing: its first start had nothing to restore, and a task that moves to another
    thread has nothing left to restore.
    """
    restored: Counter[tuple[str, int]] = Counter()
    for count, topic, partition in re.findall(r"restored (\d+) records of (\S+)-(\d+)", log):
        restored[topic, int(partition)] += int(count)
    return restored


@pytest.mark.slow
def test_a_stopped_application_grows_too_and_with_a_static_partitioner_nothing_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        ordered = OrderedInPlace(tmp_path / "ordered", broker.bootstrap_servers, partitioner=STATIC)
        ordered.prepare()
        monkeypatch.setenv("LINKS", str(ordered.directory))
        monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'plugins'}")
        expansion = Expansion.of_file(ordered.file, broker.bootstrap_servers, tmp_path / "run", runner=run_here)
        try:
            with ordered.at_work():
                assert ordered.run("start", NAME) == 0
                wait_until(lambda: len(ordered.seen) == len(ordered.sent) > 300, timeout=120, what="every key")
                assert ordered.run("stop", NAME) == 0
                before = sum(ordered.sent.values())
                wait_until(lambda: sum(ordered.sent.values()) > before + 500, timeout=120, what="a backlog")
                expansion.begin()
                job = expansion.submit("move")
                with pytest.raises(Outage, match="start it, and let it run until"):
                    run_cutover(expansion.application, expansion.connection, owner=expansion.owner)
                assert job.wait(60) == 0, "a job whose attempt was rolled back ends"
                assert ordered.run("status", NAME) == STOPPED, "it was not this that had stopped it"
                assert journal_of(expansion).phase is Phase.ROLLED_BACK
                (move,) = journal_of(expansion).plan.changelogs
                admin = ClusterAdmin(expansion.connection)
                assert "min.compaction.lag.ms" not in admin.describe_topics([move.source])[move.source].overrides

                assert ordered.run("start", NAME) == 0
                ordered.stop_sending()
                wait_until(lambda: ordered.is_all_seen, timeout=120, what="the last output")
                assert ordered.run("stop", NAME) == 0
                expansion.run()
                assert copied(expansion) == 0
                assert ordered.run("status", NAME) == 0
        finally:
            ordered.run("stop", NAME)
    assert ordered.wrong() == {}


@pytest.mark.parametrize(
    "counts", [pytest.param((6,), id="once"), pytest.param((6, 8), id="and-again", marks=pytest.mark.slow)]
)
def test_linear_hashing_moves_the_keys_of_split_partitions_exactly_once(
    counts: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It grows from 4 partitions, with its move killed on the way.

    :param counts: partitions after each growth. A second one goes over what the first one left behind.
    """
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        ordered = OrderedInPlace(tmp_path / "ordered", broker.bootstrap_servers)
        ordered.prepare()
        monkeypatch.setenv("LINKS", str(ordered.directory))
        try:
            with ordered.at_work():
                assert ordered.run("start", NAME) == 0
                wait_until(lambda: len(ordered.seen) == len(ordered.sent) > 300, timeout=120, what="every key")
                for number, count in enumerate(counts):
                    changes = {"partitions": count}
                    expansion = Expansion.of_file(
                        ordered.file,
                        broker.bootstrap_servers,
                        tmp_path / f"run-{number}",
                        changes,
                        runner=run_here,
                    )
                    expansion.owner = f"shell/run-{number}"
                    grow(expansion, killed=not number)
                    (move,) = journal_of(expansion).plan.changelogs
                    assert move.grown_from == (4, *counts)[:number]
                    assert copied(expansion) == moving(expansion, move, journal_of(expansion)) > 0
                ordered.stop_sending()
                wait_until(lambda: ordered.is_all_seen, timeout=120, what="the last output")
        finally:
            ordered.run("stop", NAME)
        generations = expansion.state().generations
        with pytest.raises(Refused, match="nothing was deleted"):
            retire(expansion.application, expansion.connection, owner=expansion.owner)
        topic = ClusterAdmin(expansion.connection).describe_topics([move.source])[move.source]
        timings = journal_of(expansion).timings
    print(f"{sum(ordered.sent.values())} records; {timings}")
    assert ordered.wrong() == {}
    assert generations is not None
    running = (generations.running, generations.generation, generations.partitions)
    assert running == (NAME, 1 + len(counts), counts[-1])
    assert topic.partitions == counts[-1]
    assert "min.compaction.lag.ms" not in topic.overrides


def grow(expansion: Expansion, *, killed: bool) -> None:
    """Run a growth in place to its end.

    :param killed: kill its move with everything that it has started, and run it again.
    """
    if not killed:
        expansion.run()
        return
    expansion.follow(expansion.begin(), before="move")
    submitted = expansion.submit("move")
    with ThreadPoolExecutor(max_workers=1) as beside:
        done = beside.submit(run_cutover, expansion.application, expansion.connection, owner=expansion.owner)
        wait_until(lambda: "move/1" in expansion.state().results, timeout=120, what="the move to be at work")
        kill_session(submitted.pid)
        expansion.job("move")
        done.result()
    report = expansion.verify()
    assert report["passed"], report
    expansion.finish()
