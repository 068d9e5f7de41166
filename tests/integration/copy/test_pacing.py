"""A copy on a real broker is limited, paused or throttled by a quota: it takes longer, and the result is equal."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from kafka_rescale.core.errors import ClusterOutage, Fenced, Outage
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.kafka.client.bounded_call import StuckCall
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.failures import Rewound
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.progress import CopyProgress
from kafka_rescale.kafka.copy.settings import BULK, LIVE, CopySettings
from kafka_rescale.kafka.copy.throttle import Share, unlimited
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.copy.window import Window

from testbed.broker import EmbeddedBroker
from testbed.jars import java_command
from tests.integration.copy_helpers import assert_copied, changelog, create, ends_of, plan_of, records, write

pytestmark = pytest.mark.integration

SIZE = 1_000
QUOTA = 500_000
QUOTED = 14_000
QUOTED_SETTINGS = replace(BULK, still_seconds=LIVE.still_seconds, commit_seconds=3.0)
TRANSACTION_SECONDS = 2.0
ABORTED_SECONDS = TRANSACTION_SECONDS + 11.0
"""After so long, a coordinator has surely aborted a transaction: it looks for overdue ones every ten seconds."""


@dataclass(frozen=True)
class Impatient(CopySettings):
    """A worker with short timeouts."""

    def consumer(self) -> dict[str, int]:
        return {**super().consumer(), "max.poll.interval.ms": 6_000, "session.timeout.ms": 6_000}


IMPATIENT = Impatient(**vars(replace(LIVE, stall_seconds=1.5, still_seconds=2.0, look_seconds=0.2)))


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


@pytest.fixture
def hasty(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> KafkaConnection:
    """A connection whose transactions may be open for two seconds."""
    monkeypatch.setattr("kafka_rescale.kafka.writing.settings.TRANSACTION_SECONDS", TRANSACTION_SECONDS)
    return KafkaConnection({**broker.client_config(), "socket.timeout.ms": "1500"})


class Said:
    """A share of the pace that a test changes while the copy obeys it."""

    def __init__(self, share: float | None) -> None:
        self.share = share

    def __call__(self) -> float | None:
        return self.share


def made(connection: KafkaConnection, unique: str, count: int, store: str = "store") -> tuple[Plan, Move]:
    """Make topics with so many records, and return the plan of their copy."""
    move = changelog(unique, "key-value", 2, 4, store)
    plan = plan_of(unique, move)
    create(connection, plan)
    write(connection, move, records(count, size=SIZE))
    return plan, move


def copied(
    connection: KafkaConnection, plan: Plan, share: Share = unlimited, settings: CopySettings = BULK
) -> float:
    """Copy everything, and return how many seconds it took."""
    ends = ends_of(connection, *plan.moves)
    with closing(CopyWorker(connection, plan, units_of(plan.moves), settings, share=share)) as worker:
        worker.begin()
        began = time.monotonic()
        worker.run_to(ends, now_ms())
        return time.monotonic() - began


def test_a_limit_is_kept_and_half_of_it_takes_twice_as_long(connection: KafkaConnection, unique: str) -> None:
    took = {}
    for name, share in (("free", None), ("whole", 1_000_000.0), ("half", 500_000.0)):
        plan, move = made(connection, f"{unique}-{name}", 3_000)
        took[name] = copied(connection, plan, Said(share))
        assert_copied(connection, move)
    print(took)
    assert took["whole"] > 2 * took["free"]
    assert 1.6 < took["half"] / took["whole"] < 2.5


def test_a_limit_that_is_raised_while_it_copies_is_heard(connection: KafkaConnection, unique: str) -> None:
    plan, move = made(connection, unique, 3_000)
    said = Said(20_000.0)
    ends = ends_of(connection, move)
    with closing(CopyWorker(connection, plan, units_of([move]), share=said)) as worker:
        worker.begin()
        steps = _until(worker, lambda: _written(worker) > 0)
        slow = _written(worker)
        assert slow < sum(ends.values()), f"everything after {steps} steps"
        said.share = None
        worker.run_to(ends, now_ms())
    assert_copied(connection, move)


def test_a_pause_is_longer_than_every_time_out_and_then_the_copy_goes_on(
    hasty: KafkaConnection, unique: str
) -> None:
    """Its transactions, its watch for standstill and silence, and its consumer would all time out earlier."""
    plan, move = made(hasty, unique, 2_000)
    said = Said(200_000.0)
    with closing(CopyWorker(hasty, plan, units_of([move]), IMPATIENT, share=said)) as worker:
        worker.begin()
        ends = ends_of(hasty, move)
        _until(worker, lambda: _written(worker) > 0)
        said.share = 0.0
        worker.step()
        at, clients = _written(worker), worker.writers
        began = time.monotonic()
        _until(worker, lambda: time.monotonic() - began > ABORTED_SECONDS)
        assert not any(writer.pending_bytes for writer in worker.writers.values()), "a transaction is open"
        assert _written(worker) == at, "it has copied in the pause"
        said.share = None
        worker.run_to(ends, now_ms())
        assert worker.writers is clients, "its clients were replaced"
        assert not worker.commits.has_rewound
    assert_copied(hasty, move)


# It shows what the test above would find; in `make test`, that one.
@pytest.mark.slow
def test_a_transaction_that_is_held_open_for_as_long_is_aborted(
    hasty: KafkaConnection, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The opposite of the test above: a worker that doesn't commit before it rests."""
    plan, move = made(hasty, unique, 2_000)
    monkeypatch.setattr(CopyWorker, "_commit", lambda *_: None)
    with closing(CopyWorker(hasty, plan, units_of([move]), IMPATIENT, share=Said(200_000.0))) as worker:
        worker.begin()
        _until(worker, lambda: any(writer.pending_bytes for writer in worker.writers.values()))
        writer = next(writer for writer in worker.writers.values() if writer.pending_bytes)
        time.sleep(ABORTED_SECONDS)
        with pytest.raises((Fenced, Outage, Rewound)):
            writer.commit(worker._consumer)


@pytest.fixture
def quota(broker: EmbeddedBroker, connection: KafkaConnection, unique: str) -> KafkaConnection:
    """A connection whose client may write half a megabyte per second."""
    alter = ["--alter", "--add-config", f"producer_byte_rate={QUOTA}"]
    whom = ["--entity-type", "clients", "--entity-name", unique]
    command = ["--bootstrap-server", broker.bootstrap_servers, *alter, *whom]
    subprocess.run(java_command("kafka.admin.ConfigCommand", *command), check=True, capture_output=True)
    return KafkaConnection({**broker.client_config(), "client.id": unique})


def test_a_quota_of_the_brokers_slows_the_copy_and_nothing_times_out(
    connection: KafkaConnection, quota: KafkaConnection, unique: str
) -> None:
    """Brokers let a client write its quota of ten seconds at once.

    Then they delay answers by as much as it exceeds it.
    """
    free, unthrottled = made(connection, f"{unique}-free", QUOTED)
    plan, move = made(connection, unique, QUOTED)
    quick = copied(connection, free, settings=QUOTED_SETTINGS)
    with closing(CopyWorker(quota, plan, units_of([move]), QUOTED_SETTINGS)) as worker:
        worker.begin()
        clients, began = worker.writers, time.monotonic()
        worker.run_to(ends_of(connection, move), now_ms())
        slow = time.monotonic() - began
        assert worker.writers is clients, "its clients were replaced"
        assert not worker.commits.has_rewound
    progress = CopyProgress(connection, plan, [move])
    progress.read()
    print(f"{quick=} {slow=} {progress.throttled_ms=}")
    assert slow > 5 * quick
    assert progress.throttled_ms > 0, "the driver would not know of it"
    assert_copied(connection, unthrottled)
    assert_copied(connection, move)


# It shows what the test above would find; in `make test`, that one.
@pytest.mark.slow
def test_without_the_bound_far_more_is_on_its_way_and_commits_may_time_out(
    connection: KafkaConnection, quota: KafkaConnection, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The opposite of the test above: a worker that does not wait for answers.

    Whether a commit times out depends on the speed of the machine.
    """
    is_full, unbounded = Window.is_full, list[bool]()

    def never(window: Window, on_way: int) -> bool:
        unbounded.append(is_full(window, on_way))
        return False

    def renew(_: CopyWorker, reason: ClusterOutage, __: object) -> None:
        raise reason

    monkeypatch.setattr(Window, "is_full", never)
    monkeypatch.setattr(CopyWorker, "_renew", renew)
    plan, move = made(connection, unique, QUOTED)
    with closing(CopyWorker(quota, plan, units_of([move]), QUOTED_SETTINGS)) as worker, suppress(StuckCall):
        worker.begin()
        worker.run_to(ends_of(connection, move), now_ms())
    assert any(unbounded), "nothing was held back in the test above, either"


def _written(worker: CopyWorker) -> int:
    return sum(writer.position for writer in worker.writers.values())


def _until(worker: CopyWorker, condition: Callable[[], Any]) -> int:
    """Step until a condition holds, and return how many steps that took."""
    steps = 0
    while not condition():
        worker.step()
        steps += 1
    return steps
