"""When a worker rests, and how much it writes at a time."""

from __future__ import annotations

from kafka_rescale.kafka.copy.settings import BULK, LIVE
from kafka_rescale.kafka.copy.throttle import BURST_SECONDS, PAUSED_SECONDS, Throttle
from kafka_rescale.kafka.copy.window import FIRST_BYTES, LEAST_BYTES, MOST_BYTES, THROTTLED_BYTES, Window


class World:
    """A clock and a share that a test sets."""

    def __init__(self, share: float | None = 1_000.0) -> None:
        self.now, self.share = 0.0, share
        self.throttle = Throttle(lambda: self.share, lambda: self.now)

    def rest(self, after: float = 0.0) -> float:
        self.now += after
        return self.throttle.rest_seconds()


def test_it_rests_when_it_is_half_a_second_ahead_until_nothing_is_owed() -> None:
    world = World()
    world.throttle.spent(round(1_000 * BURST_SECONDS))
    assert world.rest() == 0
    world.throttle.spent(500)
    assert world.rest() == 1.0
    assert world.rest(0.75) == 0.25
    assert world.rest(0.25) == 0


def test_an_idle_worker_saves_nothing_up() -> None:
    world = World()
    assert world.rest(3600.0) == 0
    world.throttle.spent(2_000)
    assert world.rest() == 2.0


def test_a_new_share_counts_at_once_and_without_one_nothing_is_owed() -> None:
    world = World(1.0)
    world.throttle.spent(1_000)
    assert world.rest() == 1_000.0
    world.share = 1_000.0
    assert world.rest() == 1.0
    world.share = None
    assert world.rest() == 0
    world.share = 1.0
    assert world.rest() == 0


def test_a_pause_rests_whatever_is_owed_and_forgets_nothing() -> None:
    world = World()
    world.share = 0.0
    assert world.rest() == PAUSED_SECONDS
    world.throttle.spent(1_000)
    assert world.rest(60.0) == PAUSED_SECONDS
    world.share = 1_000.0
    assert world.rest() == 1.0


def test_it_takes_few_records_at_a_time_when_they_are_large_or_the_share_is_small() -> None:
    window = Window(BULK)
    assert window.poll_records() == BULK.poll_records
    for _ in range(20):
        window.wrote(10, 10 * 100_000)
    assert window.poll_records() == FIRST_BYTES // 100_000
    assert window.poll_records(10) == FIRST_BYTES // 100_000 - 10
    assert not window.is_full(FIRST_BYTES // 200_000)
    assert window.is_full(FIRST_BYTES // 200_000 + 1)
    assert window.poll_records(0, 250_000.0) == 2
    assert window.poll_records(0, 1.0) == 1


def test_brokers_that_throttle_are_heard_before_a_commit_takes_long() -> None:
    window = Window(BULK)
    window.throttled()
    assert window.bytes == THROTTLED_BYTES
    window.stuck()
    window.throttled()
    assert window.bytes == THROTTLED_BYTES // 8, "what is less already stays"


def test_commits_that_take_long_let_less_be_on_its_way_until_they_are_quick_again() -> None:
    window = Window(LIVE)
    window.committed(MOST_BYTES, LIVE.still_seconds / 5)
    assert window.bytes == FIRST_BYTES
    for _ in range(9):
        window.committed(1, 0.01)
    assert window.bytes == MOST_BYTES
    window.committed(MOST_BYTES, LIVE.still_seconds / 3)
    assert window.bytes == MOST_BYTES // 2
    window.stuck()
    assert window.bytes == MOST_BYTES // 16
    window.committed(0, 0.01)
    assert window.bytes == MOST_BYTES // 16, "a commit of nothing says nothing"
    window.committed(1, 0.01)
    assert window.bytes == MOST_BYTES // 8
    for _ in range(9):
        window.committed(1, 0.01)
    assert window.bytes == MOST_BYTES
    for _ in range(9):
        window.stuck()
    assert window.bytes == LEAST_BYTES
