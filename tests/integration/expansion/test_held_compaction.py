"""What compaction must not remove from green's topics is held until it is released, whatever task runs again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.journal_store import begin
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.operations.application.load import load_application
from kafka_rescale.operations.expansion.compaction import (
    HELD,
    KEEP_ALL,
    KEEP_DELETIONS,
    KEPT_MS,
    RETENTION,
    hold_compaction,
    hold_deletions,
    release_compaction,
)
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.stages import expand_stage

from testbed.broker import EmbeddedBroker
from testbed.processes import wait_until
from tests.support.small_application import declared, write
from tests.support.small_cluster import make, run_preflight

pytestmark = pytest.mark.integration

OWNER = "expand/run-1"
HOUR_MS, DAY_MS = "3600000", "86400000"
DELETIONS = {RETENTION: "60000"}
OWN = {"min.compaction.lag.ms": HOUR_MS, "max.compaction.lag.ms": DAY_MS}
"""The configs of a versioned store: the minimum lag is its history."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """A broker whose own default forces compaction."""
    properties = {"log.cleaner.max.compaction.lag.ms": DAY_MS, "log.cleaner.backoff.ms": "200"}
    with EmbeddedBroker(tmp_path_factory.mktemp("forces"), properties=properties, heap="512m") as broker:
        yield broker.client_config()


BEFORE_THE_CUTOVER = {
    "nothing more": [],
    "cut over": ["cut over"],
    "rolled back": ["roll back", "cut over"],
    "rolled back, and pre-warmed again": ["roll back", "pre-warm", "cut over"],
}


class Expansion:
    """An expansion of the small application that has begun. Its changelog of customers has the given configs."""

    def __init__(self, client: Mapping[str, str], directory: Path, name: str, configs: dict[str, str]) -> None:
        make(client, name, configs={"customers-changelog": {"cleanup.policy": "compact", **configs}})
        customers, *others = declared(name)["stores"]
        kind = "versioned" if "min.compaction.lag.ms" in configs else customers["type"]
        stores = [{**customers, "type": kind}, *others]
        plan = run_preflight(client, directory, name, owner=OWNER, stores=stores).plan
        assert plan is not None
        self.plan, self.changelog = plan, f"{plan.green}-customers-changelog"
        self.application = load_application(write(directory, name, stores=stores))
        self.connection = KafkaConnection(dict(client))
        lease = Lease(owner=OWNER, epoch=1, target=8, expires_at_ms=now_ms() + 600_000)
        journal = Journal(plan=plan, owner=OWNER)
        ControlTopic(self.connection, name).update(lambda _: {"lease": lease, "journal": journal})
        self.rescale = Rescale.open(self.application, self.connection, OWNER)

    def expand(self) -> list[str]:
        """Expand all stages, as their tasks do."""
        numbers = [stage.index for stage in self.plan.stages]
        each = [expand_stage(self.application, self.connection, owner=OWNER, stage=n) for n in numbers]
        return [line for lines in each for line in lines]

    def overrides(self, *names: str) -> dict[str, str | None]:
        """The overridden configs of green's changelog of customers."""
        found = self.rescale.admin.describe_topics([self.changelog])[self.changelog].overrides
        return {name: found.get(name) for name in names}

    def begin_again(self) -> None:
        """Begin the next attempt after a rollback."""
        for phase in (Phase.ROLLING_BACK, Phase.ROLLED_BACK):
            self.rescale.advance(phase)
        journal = begin(self.rescale.control, self.plan, OWNER, now_ms())
        assert (journal.attempt, journal.compaction_lags) == (2, {})

    def promote(self) -> None:
        """Advance through all phases until green owns the inputs."""
        for phase in (Phase.QUIESCING, Phase.QUIESCED, Phase.CAUGHT_UP, Phase.PROMOTED):
            self.rescale.advance(phase)


@pytest.mark.parametrize("own", [{}, OWN], ids=["the brokers' defaults", "its own"])
def test_compaction_that_is_forced_is_held_too_and_put_back_afterwards(
    client: Mapping[str, str], tmp_path: Path, unique: str, own: dict[str, str]
) -> None:
    expansion = Expansion(client, tmp_path, unique, own)
    expansion.expand()
    for _ in ("by prewarm", "by cutover"):
        journal = hold_compaction(expansion.rescale, expansion.rescale.journal())
    assert expansion.overrides(*HELD) == dict.fromkeys(HELD, KEEP_ALL)
    release_compaction(expansion.rescale, journal)
    assert expansion.overrides(*HELD) == {name: own.get(name) for name in HELD}


def test_an_expand_task_that_is_cleared_leaves_the_hold_alone(
    client: Mapping[str, str], tmp_path: Path, unique: str
) -> None:
    expansion = Expansion(client, tmp_path, unique, OWN)
    assert expansion.expand()
    hold_compaction(expansion.rescale, expansion.rescale.journal())
    assert expansion.expand() == []
    assert expansion.overrides(*HELD) == dict.fromkeys(HELD, KEEP_ALL)


@pytest.mark.parametrize(
    "own",
    [
        {},
        # In `make test`, neither and both
        pytest.param({"min.compaction.lag.ms": HOUR_MS}, marks=pytest.mark.slow),
        pytest.param({"max.compaction.lag.ms": DAY_MS}, marks=pytest.mark.slow),
        OWN,
    ],
    ids=["the brokers' defaults", "a minimum", "a maximum", "both"],
)
def test_what_an_attempt_that_was_rolled_back_has_held_the_next_one_holds_and_puts_back(
    client: Mapping[str, str], tmp_path: Path, unique: str, own: dict[str, str]
) -> None:
    expansion = Expansion(client, tmp_path, unique, own)
    expansion.expand()
    hold_compaction(expansion.rescale, expansion.rescale.journal())
    expansion.begin_again()
    assert expansion.expand() == []
    assert expansion.overrides(*HELD) == dict.fromkeys(HELD, KEEP_ALL)
    for _ in ("by prewarm", "by cutover"):
        journal = hold_compaction(expansion.rescale, expansion.rescale.journal())
    assert expansion.overrides(*HELD) == dict.fromkeys(HELD, KEEP_ALL)
    release_compaction(expansion.rescale, journal)
    assert expansion.overrides(*HELD) == {name: own.get(name) for name in HELD}


def test_an_expand_task_that_is_cleared_after_the_promotion_changes_nothing(
    client: Mapping[str, str], tmp_path: Path, unique: str
) -> None:
    expansion = Expansion(client, tmp_path, unique, {**OWN, "segment.ms": HOUR_MS})
    expansion.expand()
    hold_compaction(expansion.rescale, expansion.rescale.journal())
    expansion.promote()
    expansion.rescale.admin.alter_configs(expansion.changelog, {"segment.ms": DAY_MS})
    before = expansion.overrides(*HELD, "segment.ms")
    assert expansion.expand() == []
    assert expansion.overrides(*HELD, "segment.ms") == before
    release_compaction(expansion.rescale, expansion.rescale.journal())
    assert expansion.expand() == []
    assert expansion.overrides(*HELD, "segment.ms") == {**OWN, "segment.ms": DAY_MS}
    expansion.rescale.admin.delete_topics([move.source for move in expansion.plan.moves])
    assert expansion.expand() == []


def test_until_the_cutover_deletions_stay_and_all_else_is_compacted(
    client: Mapping[str, str], tmp_path: Path, unique: str
) -> None:
    """A pre-warmed green goes on from where it has restored, however long the switch is waited for."""
    eager = {"segment.ms": "500", "min.cleanable.dirty.ratio": "0.001", RETENTION: "0"}
    expansion = Expansion(client, tmp_path, unique, eager)
    expansion.expand()
    until_ms = hold_deletions(expansion.rescale, expansion.rescale.journal())
    assert abs(until_ms - (now_ms() + KEPT_MS - int(DAY_MS))) < 60_000
    writer = Producer(dict(client))

    def write(key: str, value: str | None) -> None:
        writer.produce(expansion.changelog, value, key, partition=0)
        writer.flush()

    def log(begin: int) -> list[Message]:
        """The records from an offset on, without those that only let segments end."""
        end = expansion.rescale.admin.end_offsets([expansion.changelog])[expansion.changelog][0]
        found = read_ranges(expansion.connection, expansion.changelog, {0: (begin, end)})
        return [record for record in found if record.key() != b"tick"]

    write("gone", "1")
    write("stays", "1")
    restored = 2
    write("gone", None)
    write("stays", "2")

    def compacted() -> bool:
        write("tick", "")
        return all((record.offset() or 0) >= restored for record in log(0))

    wait_until(compacted, timeout=60, what="the log cleaner")
    # Several passes more, each of which would remove a deletion whose time is over.
    for _ in range(5):
        time.sleep(1)
        write("tick", "")
    assert [(r.key(), r.value()) for r in log(restored)] == [(b"gone", None), (b"stays", b"2")]


@pytest.mark.parametrize("own", [{}, DELETIONS], ids=["the brokers' default", "its own"])
@pytest.mark.parametrize("steps", BEFORE_THE_CUTOVER.values(), ids=BEFORE_THE_CUTOVER)
def test_the_time_of_deletions_is_put_back_whatever_came_between(
    client: Mapping[str, str], tmp_path: Path, unique: str, own: dict[str, str], steps: list[str]
) -> None:
    expansion = Expansion(client, tmp_path, unique, own)
    expansion.expand()
    hold_deletions(expansion.rescale, expansion.rescale.journal())
    for step in steps:
        if step == "roll back":
            expansion.begin_again()
        elif step == "pre-warm":
            hold_deletions(expansion.rescale, expansion.rescale.journal())
        else:
            hold_compaction(expansion.rescale, expansion.rescale.journal())
        # The `expand` task is cleared, or is that of the next attempt.
        assert expansion.expand() == []
        assert expansion.overrides(RETENTION) == {RETENTION: KEEP_DELETIONS}
    release_compaction(expansion.rescale, expansion.rescale.journal())
    assert expansion.overrides(RETENTION, *HELD) == {RETENTION: own.get(RETENTION), **dict.fromkeys(HELD)}


@pytest.mark.parametrize("is_next", [True, False], ids=["by the attempt before", "by an earlier version"])
def test_what_was_kept_from_compaction_is_compacted_again_by_the_next_pre_warming(
    client: Mapping[str, str], tmp_path: Path, unique: str, is_next: bool
) -> None:
    expansion = Expansion(client, tmp_path, unique, OWN)
    expansion.expand()
    hold_compaction(expansion.rescale, expansion.rescale.journal())
    if is_next:
        expansion.begin_again()
    hold_deletions(expansion.rescale, expansion.rescale.journal())
    assert expansion.overrides(*HELD, RETENTION) == {**OWN, RETENTION: KEEP_DELETIONS}
    hold_compaction(expansion.rescale, expansion.rescale.journal())
    release_compaction(expansion.rescale, expansion.rescale.journal())
    assert expansion.overrides(*HELD, RETENTION) == {**OWN, RETENTION: None}


def test_deletions_that_the_topic_itself_keeps_longer_are_left_alone(
    client: Mapping[str, str], tmp_path: Path, unique: str
) -> None:
    years = {RETENTION: str(1000 * int(DAY_MS))}
    expansion = Expansion(client, tmp_path, unique, years)
    expansion.expand()
    hold_deletions(expansion.rescale, expansion.rescale.journal())
    assert expansion.overrides(RETENTION) == years


def test_where_the_switch_may_be_waited_for_even_longer_every_record_is_kept(
    client: Mapping[str, str], tmp_path: Path, unique: str
) -> None:
    expansion = Expansion(client, tmp_path, unique, {})
    expansion.expand()
    patient = expansion.application.model_copy(update={"max_wait_seconds": 16 * 24 * 3600})
    rescale = replace(expansion.rescale, application=patient)
    assert hold_deletions(rescale, rescale.journal()) == 0
    assert expansion.overrides(*HELD, RETENTION) == {**dict.fromkeys(HELD, KEEP_ALL), RETENTION: None}
