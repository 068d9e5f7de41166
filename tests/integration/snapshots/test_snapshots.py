"""Snapshots of days of a real changelog, without Spark: each equals a replay of the input, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.control.generations import Generations, PastGeneration
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import InvalidInput, Outage, Refused
from kafka_rescale.core.snapshots.day import DAY_MS, SnapshotDay
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.reading.log_batches import log_batches
from kafka_rescale.spark.snapshots import files as snapshot_files

from testbed.processes import wait_until
from tests.support.changelogs import Record, log_range, record_count, trim, write_log
from tests.support.snapshot_world import FIRST, STORE, SnapshotWorld, orders_of_days
from tests.unit.plan.test_repartitioned import STOP, plan

pytestmark = pytest.mark.integration

DAYS = [FIRST.minus(-n) for n in range(7)]

EAGER = {"segment_ms": "60000", "min_cleanable_dirty_ratio": "0.001"}


@pytest.fixture
def world(client: dict[str, str], unique: str, tmp_path: Path) -> SnapshotWorld:
    return SnapshotWorld(client, unique, tmp_path)


def files_of(world: SnapshotWorld) -> dict[str, bytes]:
    return {str(f.relative_to(world.directory)): f.read_bytes() for f in world.directory.rglob("*") if f.is_file()}


@pytest.mark.parametrize("transactional", [False, True], ids=["idempotent", "in transactions, some aborted"])
def test_seven_days_are_what_a_replay_of_the_input_says(world: SnapshotWorld, transactional: bool) -> None:
    world.create(orders_of_days(8), transactional=transactional)
    read = [world.take(day) for day in DAYS]
    assert [world.totals(day) for day in DAYS] == [world.expected(day) for day in DAYS]
    assert len({str(world.expected(day)) for day in DAYS}) == len(DAYS)
    assert max(read) < 60, "each day reads its own records, not those of the days before"


def test_days_can_be_built_in_any_order_and_again_without_a_difference(world: SnapshotWorld) -> None:
    world.create(orders_of_days(8))
    for day in (DAYS[3], DAYS[0], DAYS[6]):
        world.take(day)
    before = files_of(world)
    world.go_on(orders_of_days(9)[-20:])
    for day in (DAYS[6], DAYS[0], DAYS[3]):
        world.take(day)
    assert files_of(world) == before
    assert world.totals(DAYS[6]) == world.expected(DAYS[6])


def test_a_day_from_scratch_reads_everything_and_says_the_same(world: SnapshotWorld) -> None:
    world.create(orders_of_days(3))
    world.take(DAYS[0])
    least = world.take(DAYS[1])
    before = files_of(world)
    most = world.take(DAYS[1], from_scratch=True)
    assert most > least
    assert files_of(world) == before


def test_a_killed_attempt_leaves_no_half_day(world: SnapshotWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create(orders_of_days(3))
    world.take(DAYS[0])
    with monkeypatch.context() as killed:
        killed.setattr(snapshot_files.StoreDirectory, "discard", lambda *_: None)
        killed.setattr(snapshot_files.StoreDirectory, "publish", _killed)
        with pytest.raises(KeyboardInterrupt):
            world.take(DAYS[1])
    place = world.directory / world.application / STORE
    assert [p.name for p in place.glob("date=*")] == [f"date={DAYS[0]}"]
    assert list(place.glob("_draft-*"))
    world.take(DAYS[1])
    assert world.totals(DAYS[1]) == world.expected(DAYS[1])
    assert not list(place.glob("_draft-*"))


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_day_that_log_cleaning_has_damaged_is_refused_and_the_first_exact_one_named(
    world: SnapshotWorld,
) -> None:
    by_day = [[o for o in orders_of_days(7) if o.timestamp < d.end_ms <= o.timestamp + DAY_MS] for d in DAYS]
    world.create(by_day[0], min_compaction_lag_ms="0", **EAGER)
    for orders in by_day[1:3]:  # the broker closes a segment at the first record of the next append
        world.go_on(orders)
    log = log_range(world.client, world.changelog)
    wait_until(lambda: record_count(world.client, log) < len(world.orders), timeout=120, what="the log cleaner")
    _keep_everything(world)
    for orders in by_day[3:]:
        world.go_on(orders)
    with pytest.raises(Refused, match="has removed from") as refused:
        world.take(DAYS[0])
    first = next(day for day in DAYS if f"The first exact day is {day}." in str(refused.value))
    assert first in DAYS[2:4]
    for day in DAYS[: DAYS.index(first)]:
        with pytest.raises(Refused, match=f"The first exact day is {first}"):
            world.take(day)
    for day in DAYS[DAYS.index(first) : 6]:
        world.take(day)
        assert world.totals(day) == world.expected(day)


def test_a_day_that_was_taken_in_time_stays_when_it_could_not_be_built_any_more(world: SnapshotWorld) -> None:
    world.create(orders_of_days(3), cleanup_policy="compact,delete", retention_ms="-1")
    world.take(DAYS[0])
    before = files_of(world)
    for partition in range(3):
        trim(world.client, world.changelog, partition, 5)
    with pytest.raises(Refused, match="No day is exact"):
        world.take(DAYS[0])
    assert files_of(world) == before
    world.take(DAYS[1])
    assert world.totals(DAYS[1]) == world.expected(DAYS[1])


def test_a_day_is_not_taken_before_the_application_has_processed_it(
    world: SnapshotWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    world.create(orders_of_days(2))
    world.commit(behind=30)
    with pytest.raises(Outage, match="records of that day that it has not processed"):
        world.take(DAYS[0], max_wait_seconds=1)
    assert f"waiting for {world.application} to process older records, the first in {world.input}-0 at" in (
        capsys.readouterr().out
    )
    world.commit(behind=2)
    world.take(DAYS[0], max_wait_seconds=1)
    assert world.totals(DAYS[0]) == world.expected(DAYS[0])


def test_a_day_is_not_taken_before_a_bridge_has_carried_on_what_belongs_to_it(world: SnapshotWorld) -> None:
    world.create(orders_of_days(2))
    old = f"{world.application}-old"
    inputs = [{"topic": old, "policy": "repartitioned", "isolation_level": "read_committed"}]
    start = f"true {{application_id}} {{input:{old}}}"
    lifecycle = {"type": "shell", "start": start, "stop": STOP, "status": STOP}
    of = [{"sources": [old], "stores": ["last"], "sinks": ["totals"]}]
    declared = plan(1, 2, application_id=world.application, inputs=inputs, lifecycle=lifecycle, subtopologies=of)
    planned = declared.model_copy(update={"green": world.application})
    late = Record(b"customer-1", b"1", DAYS[0].end_ms - 1)
    write_log(world.client, old, 1, [(0, late)], config={"retention.ms": "-1"})
    connection = world.job(DAYS[0]).connection
    control = ControlTopic(connection, world.application)
    running = Generations(running=world.application, generation=1, since_ms=1)
    journal = Journal(plan=planned, phase=Phase.COMPLETE, pause_started_ms=1)
    control.update(lambda _: {"generations": running, "journal": journal})
    with pytest.raises(Outage, match=rf"group {planned.bridge_group}: found records .* the first in {old}-0 at 0"):
        world.take(DAYS[0], max_wait_seconds=1)
    ClusterAdmin(connection).commit(planned.bridge_group, {old: {0: 1}})
    world.take(DAYS[0], max_wait_seconds=1)
    assert world.totals(DAYS[0]) == world.expected(DAYS[0])


def test_a_day_that_is_not_over_is_refused(world: SnapshotWorld) -> None:
    world.create(orders_of_days(1))
    with pytest.raises(InvalidInput, match="a day that is not over"):
        world.take(SnapshotDay.named("2999-01-01"))


def test_days_that_are_too_old_are_deleted_and_their_results_too(world: SnapshotWorld) -> None:
    world.create(orders_of_days(5))
    for day in DAYS[:4]:
        world.take(day, keep_days=2)
    place = world.directory / world.application / STORE
    kept = [str(day) for day in DAYS[2:4]]
    assert sorted(p.name for p in place.iterdir()) == [f"date={day}" for day in kept]
    control = ControlTopic(world.job(DAYS[0]).connection, world.application)
    assert sorted(control.read().results) == [f"snapshot/{day}" for day in kept]
    with pytest.raises(InvalidInput, match=f"the newest is {DAYS[3]}, keep_days 2"):
        world.take(DAYS[0], keep_days=2)


def test_the_generation_of_the_time_is_read_and_named(world: SnapshotWorld) -> None:
    world.create(orders_of_days(3))
    world.take(DAYS[0])
    control = ControlTopic(world.job(DAYS[0]).connection, world.application)
    paused_ms, ends = DAYS[1].end_ms + 1, dict(enumerate(log_range(world.client, world.input).ends))
    past = PastGeneration(
        running=world.application, generation=1, since_ms=0, until_ms=paused_ms, committed={world.input: ends}
    )
    green = Generations(running=f"{world.application}-g2", generation=2, since_ms=paused_ms, past=(past,))
    control.update(lambda _: {"generations": green})
    world.take(DAYS[1])
    assert world.totals(DAYS[1]) == world.expected(DAYS[1])
    assert f"generation {world.application};" in control.read().results[f"snapshot/{DAYS[1]}"].detail
    with pytest.raises(Refused, match=f"no topic {world.application}-g2-{STORE}-changelog"):
        world.take(DAYS[2], max_wait_seconds=0)
    left = past.model_copy(update={"committed": {world.input: dict.fromkeys(ends, 10)}})
    control.update(lambda _: {"generations": green.model_copy(update={"past": (left,)})})
    with pytest.raises(Refused, match=rf"left to its successor: .*The first exact day is {DAYS[2]}"):
        world.take(DAYS[1])


def test_batches_show_what_clients_do_not(world: SnapshotWorld) -> None:
    world.create(orders_of_days(1), transactional=True)
    connection = world.job(DAYS[0]).connection
    for partition, (begin, end) in log_range(world.client, world.changelog).ranges.items():
        batches = list(log_batches(connection, world.changelog, partition, begin, end))
        assert [b.first for b in batches[1:]] == [b.last + 1 for b in batches[:-1]]
        assert (batches[0].first, batches[-1].last) == (0, end - 1)
        assert sum(b.is_control for b in batches) == 2
        assert all(b.is_whole for b in batches)


def _keep_everything(world: SnapshotWorld) -> None:
    admin = ClusterAdmin(world.job(DAYS[0]).connection)
    # All later days are in the newest segment, so the log cleaner can't have removed any of their records.
    keep = {"min.compaction.lag.ms": str(2**62), "segment.ms": str(2**62)}
    admin.alter_configs(world.changelog, keep)
