"""A copy that goes wrong while the application is stopped is not promoted. The application runs again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message, Producer
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.errors import RescaleError
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.marks import Mark
from kafka_rescale.kafka.copy.reset import restart
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.operations.cutover import quiesce

from testbed.expansion import Expansion
from testbed.flights_stack import FlightsStack
from tests.support.kills import kill_session
from tests.support.live_expansion import journal_of, live_application

pytestmark = pytest.mark.integration


@dataclass(frozen=True)
class Harm:
    """A wrong record for a copy, made from the last record of one of its keys."""

    name: str
    value: bytes | None = b""
    key: bytes = b""
    timestamp_ms: int = 0
    headers: tuple[tuple[str, bytes], ...] = ()
    shift: int = 0

    def put_into(self, expansion: Expansion, move: Move) -> bytes:
        """Write the wrong record, and return its key."""
        last = _last(expansion, move)
        key = self.key or last.key() or b""
        producer = Producer(expansion.connection.client())
        producer.produce(
            move.target,
            key=key,
            value=last.value() if self.value == b"" else self.value,
            partition=((last.partition() or 0) + self.shift) % move.target_partitions,
            timestamp=self.timestamp_ms or last.timestamp()[1],
            headers=list(self.headers),
        )
        assert producer.flush(30) == 0
        return key if isinstance(key, bytes) else key.encode()


HARMS = (
    Harm("another value", value=b"another"),
    Harm("deleted", value=None),
    Harm("another time", timestamp_ms=1_700_000_000_001),
    Harm("another header", headers=(("more", b""),)),
    Harm("elsewhere", shift=1),
    Harm("invented", key=b"nobody's"),
    Harm("doubled"),
)


# In `make test`, test_rolling_proof.py finds a wrong value in the last delta by its key, U/test_proof.py promotes
# nothing then, and in test_expansion_crash.py a pause ends early, and blue runs again.
@pytest.mark.slow
def test_a_wrong_value_is_not_promoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with live_application(tmp_path, rate=8) as (stack, expansion):
        expansion.warm(expansion.begin())
        is_found(stack, expansion, monkeypatch, HARMS[0])


@pytest.mark.slow
def test_nothing_wrong_is_promoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with live_application(tmp_path, rate=8) as (stack, expansion):
        for harm in HARMS:
            copy_anew(expansion)
            is_found(stack, expansion, monkeypatch, harm)
        copy_anew(expansion)
        expansion.cut_over()
        expansion.assert_verified()
        stack.finish_replay()
        stack.await_equal("flights-g2")


def copy_anew(expansion: Expansion) -> None:
    """Begin another attempt with new copies, without anything from earlier attempts."""
    plan = expansion.begin()
    attempt = journal_of(expansion).attempt
    for move in plan.changelogs if attempt > 1 else ():
        restart(expansion.connection, plan, move, Mark(as_of_ms=now_ms(), attempt=attempt))
    expansion.warm(plan)


def is_found(stack: FlightsStack, expansion: Expansion, monkeypatch: pytest.MonkeyPatch, harm: Harm) -> None:
    prove_gone, put = quiesce.prove_gone, list[bytes]()

    def after_the_stop(rescale: Any, plan: Any, *arguments: Any) -> Any:
        put.append(harm.put_into(expansion, plan.changelogs[0]))
        return prove_gone(rescale, plan, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(quiesce, "prove_gone", after_the_stop)
        with pytest.raises(RescaleError) as raised:
            expansion.cut_over()
    assert f"key 0x{put[0].hex()}" in str(raised.value), harm.name
    assert journal_of(expansion).phase is Phase.ROLLED_BACK
    assert stack.run("status", "flights") == 0
    assert expansion.state().generations is None
    if expansion.beside is not None:
        kill_session(expansion.beside[1].pid)
        expansion.beside = None


def _last(expansion: Expansion, move: Move) -> Message:
    """Return a record that is the last one of its key and no deletion."""
    admin = ClusterAdmin(expansion.connection)
    ends = admin.end_offsets([move.target])[move.target]
    begins = admin.begin_offsets([move.target])[move.target]
    ranges = {p: (begins[p], end) for p, end in ends.items()}
    last = {m.key(): m for m in read_ranges(expansion.connection, move.target, ranges)}
    return next(m for m in reversed(last.values()) if m.value() is not None)
