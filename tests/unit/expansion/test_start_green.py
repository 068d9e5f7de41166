"""Green starts while blue may have survived its stop: members that are removed from blue's group come back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.operations.cutover import start_green as operation
from kafka_rescale.operations.cutover.start_green import start_green
from kafka_rescale.operations.expansion import producers
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.timings import Timings
from kafka_rescale.operations.modes import blue_green

from tests.support.expansion.gate_world import GREEN, PLAN
from tests.support.small_application import application

BLUE, TOPIC = PLAN.blue, "shop-orders"
START: PartitionOffsets = {TOPIC: {0: 5, 1: 0}}


@dataclass
class World:
    """What runs, and what its groups have. The clock advances only while the code sleeps.

    :param running: application ids that run, by their ``status``.
    :param unseen: application ids that ``status`` and ``stop`` don't reach. Their members come back after they are
        removed.
    :param freezes_at: the call about green's group before which the process freezes once. Then ``meanwhile``
        happens.
    :param held: the pass with which green waits, or 0 if it doesn't wait.
    :param lets_in: whether held processes join their group when the offsets are there. If not, they end.
    """

    running: set[str] = field(default_factory=set)
    unseen: set[str] = field(default_factory=set)
    members: set[str] = field(default_factory=set)
    committed: PartitionOffsets = field(default_factory=dict)
    seconds: float = 0.0
    slept: float = 0.0
    watched: int = 0
    noted: bool = False
    starts: int = 0
    stops: int = 0
    held: int = 0
    lets_in: bool = True
    freezes_at: str = ""
    meanwhile: Callable[[], object] = lambda: None
    state: ControlState = field(default_factory=ControlState)

    def __post_init__(self) -> None:
        journal = Journal(plan=PLAN, phase=Phase.PROMOTED, owner="test", green_start=START, held=self.held)
        self.state = ControlState(
            journal=journal, lease=Lease(owner="test", epoch=1, target=2, expires_at_ms=2**62)
        )

    @property
    def journal(self) -> Journal:
        assert self.state.journal is not None
        return self.state.journal

    @property
    def rescale(self) -> Any:
        """A ``Rescale`` over all this."""
        lifecycle: Any = SimpleNamespace(is_running=self._is_running, start=self._start, stop=self._stop)
        admin: Any = SimpleNamespace(
            grow_topics=lambda _: {},
            remove_members=self._remove_members,
            groups_like=lambda _: (),
            describe_group=self._group,
            committed=self._committed,
            committed_metadata=lambda _: {},
            commit=self._commit,
            delete_group=lambda _: None,
        )
        control: Any = SimpleNamespace(read=lambda: self.state, update=self._update)
        nobody: Any = None
        return Rescale(application("shop"), nobody, admin, control, lifecycle, owner="test")

    def sleep(self, seconds: float) -> None:
        """Let time pass. After a heartbeat, live members have noticed that they were removed, and are back."""
        self.seconds += seconds
        self.slept += seconds
        if seconds > 3.0:
            self.members |= self.unseen

    def watch(self, *arguments: Any) -> dict[str, float]:
        """Let green join its group after a second and a half, and write its first output one second later."""
        self.watched += 1
        assert self.noted, "before anything is watched, the log stops saying that nobody runs"
        self.seconds += 1.5
        arguments[3]()
        self.seconds += 1.0
        return {"joined": 1.5, "restore": 0.5, "first_output": 0.5}

    def note_start(self) -> None:
        """Hear that green was started, or let in."""
        assert GREEN in self.running
        self.noted = True

    def works(self) -> None:
        """Let green process further."""
        self.committed = {t: {p: o + 100 for p, o in of.items()} for t, of in self.committed.items()}

    def _is_running(self, instance: Any) -> bool:
        if instance.application_id == GREEN:
            self._freeze("is_running")
        return instance.application_id in self.running

    def _stop(self, _: Any) -> None:
        self.stops += 1
        self.running.discard(GREEN)
        self.members.discard(GREEN)

    def _start(self, _: Any) -> None:
        self.starts += 1
        self.running.add(GREEN)
        self.members.add(GREEN)

    def _freeze(self, call: str) -> None:
        if call == self.freezes_at:
            self.freezes_at = ""
            self.meanwhile()

    def _remove_members(self, group: str) -> tuple[str, ...]:
        if group == GREEN:
            self._freeze("remove_members")
        self.members.discard(group)
        return ()

    def _committed(self, _: str) -> PartitionOffsets:
        self._freeze("committed")
        return {t: dict(of) for t, of in self.committed.items()}

    def _group(self, group: str) -> GroupDescription:
        return GroupDescription(group, "Stable", ("instance-1",) if group in self.members else ())

    def _commit(self, group: str, offsets: PartitionOffsets, _: Any) -> None:
        self._freeze("commit")
        if group in self.members:
            raise UnsafeState(group, found="UNKNOWN_MEMBER_ID", expected="acceptance", remedy="None.")
        self.committed = {t: dict(of) for t, of in offsets.items()}
        if self.held and GREEN in self.running:
            (self.members.add if self.lets_in else self.running.discard)(GREEN)

    def _update(self, change: Any) -> ControlState:
        self.state = self.state.model_copy(update={str(k): v for k, v in change(self.state).items()})
        return self.state


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Callable[[World], Journal]:
    """Do what the cutover task does from the promotion on."""

    def run(world: World) -> Journal:
        monkeypatch.setattr(
            blue_green, "time", SimpleNamespace(sleep=world.sleep, monotonic=lambda: world.seconds)
        )
        monkeypatch.setattr(operation, "time", SimpleNamespace(monotonic=lambda: world.seconds))
        monkeypatch.setattr(operation, "outputs_now", lambda _: {})
        monkeypatch.setattr(operation, "watch_first_output", world.watch)
        monkeypatch.setattr(producers, "release", lambda _: None)
        return start_green(world.rescale, world.journal, Timings(world.journal.timings), world.note_start)

    return run


def test_alone_it_is_started(start: Callable[[World], Journal]) -> None:
    world = World()
    assert start(world).phase is Phase.STARTED
    assert world.journal.timings["total"] > 0
    assert world.slept == pytest.approx(blue_green.REJOIN_SECONDS - 2.5), "the rest, behind the first output"
    assert world.journal.timings["start"] >= 1.5, "until it has joined its group"


def test_what_is_held_is_let_in_by_its_offsets_and_not_started(start: Callable[[World], Journal]) -> None:
    world = World(held=7, running={GREEN})
    assert start(world).phase is Phase.STARTED
    assert (world.starts, world.committed) == (0, START)
    assert world.journal.timings["release"] == 1.5
    assert "start" not in world.journal.timings


def test_what_was_held_and_is_gone_is_started(start: Callable[[World], Journal]) -> None:
    world = World(held=7)
    assert start(world).phase is Phase.STARTED
    assert world.starts == 1
    assert "release" not in world.journal.timings


def test_what_ends_when_it_is_let_in_is_started(start: Callable[[World], Journal]) -> None:
    world = World(held=7, running={GREEN}, lets_in=False)
    assert start(world).phase is Phase.STARTED
    assert world.starts == 1


def test_one_that_has_joined_without_its_offsets_is_stopped_and_started_with_them(
    start: Callable[[World], Journal],
) -> None:
    for held in (0, 7):
        world = World(held=held, running={GREEN}, members={GREEN})
        assert start(world).phase is Phase.STARTED
        assert (world.starts, world.committed) == (1, START)


def test_what_goes_on_before_its_offsets_are_looked_at_is_no_mistake(start: Callable[[World], Journal]) -> None:
    world = World(held=7, running={GREEN})
    commit = world._commit

    def disturbed(*arguments: Any) -> None:
        commit(*arguments)
        world.works()
        raise UnsafeState("offsets", found="105", expected="5", remedy="None.")

    world._commit = disturbed  # type: ignore[method-assign]
    assert start(world).phase is Phase.STARTED
    assert world.starts == 0


def test_a_blue_whose_members_come_back_is_told_while_green_runs(start: Callable[[World], Journal]) -> None:
    world = World(unseen={BLUE})
    with pytest.raises(UnsafeState) as refused:
        start(world)
    told = "a running instance (members instance-1) beside shop-g2, which runs and owns the inputs"
    assert refused.value.found == told
    assert "STOP IT NOW, and let shop-g2 run" in refused.value.remedy
    assert GREEN in world.running
    assert (world.journal.phase, world.journal.is_paused) == (Phase.PROMOTED, False)


def test_a_blue_that_its_status_sees_again_is_told(start: Callable[[World], Journal]) -> None:
    with pytest.raises(UnsafeState, match="beside shop-g2"):
        start(World(running={BLUE}))


def test_when_it_has_been_stopped_the_next_try_goes_on_and_the_pause_is_as_long_as_it_was(
    start: Callable[[World], Journal],
) -> None:
    world = World(unseen={BLUE})
    with pytest.raises(UnsafeState):
        start(world)
    timings = world.journal.timings
    # Its members linger until their session timeout.
    world.unseen.clear()
    assert BLUE in world.members
    assert start(world).phase is Phase.STARTED
    assert (world.starts, world.watched) == (1, 1)
    assert world.journal.timings == {**timings, "grow": world.journal.timings["grow"]}


def test_one_that_is_not_stopped_is_told_again(start: Callable[[World], Journal]) -> None:
    world = World(unseen={BLUE})
    for _ in range(2):
        with pytest.raises(UnsafeState, match="beside shop-g2"):
            start(world)


def test_a_green_that_was_stopped_as_well_is_started_and_watched_again(start: Callable[[World], Journal]) -> None:
    world = World(unseen={BLUE})
    with pytest.raises(UnsafeState):
        start(world)
    world.unseen.clear()
    world.running.discard(GREEN)
    assert start(world).phase is Phase.STARTED
    assert (world.starts, world.watched) == (2, 2)


@pytest.mark.parametrize(
    ("at", "found"),
    [
        ("committed", "phase started"),
        ("is_running", "phase started"),
        ("remove_members", "phase started"),
        ("commit", "UNKNOWN_MEMBER_ID"),
    ],
)
def test_a_try_that_wakes_up_late_neither_stops_nor_sets_back_a_green_that_another_has_started(
    at: str, found: str, start: Callable[[World], Journal]
) -> None:
    world = World(freezes_at=at)

    def another_starts_it() -> None:
        start(world)
        world.works()

    world.meanwhile = another_starts_it
    with pytest.raises(UnsafeState, match=f"found {found}"):
        start(world)
    assert world.committed == {TOPIC: {0: 105, 1: 100}}
    assert world.stops == 0
