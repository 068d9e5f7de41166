"""Green as the deployment, the brokers and the journal see it, without any of them.

The process that works on it can die at every call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Switch
from kafka_rescale.core.expansion.prewarming import gate_group
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan, Stage

from tests.support.small_application import application

T = TypeVar("T")
GREEN, TOPIC = "shop-g2", "shop-g2-totals-changelog"
MOVE = Move(
    kind=MoveKind.CHANGELOG,
    source="shop-totals-changelog",
    target=TOPIC,
    store="totals",
    source_partitions=1,
    target_partitions=2,
)
PLAN = Plan(
    application="shop",
    generation=2,
    blue="shop",
    green=GREEN,
    partitions=2,
    stages=(Stage(index=1, name="stage_1_subtopology_0", subtopology=0, moves=(MOVE,)),),
    inputs=(InputPlan(topic="orders", policy=InputPolicy.UNKEYED, partitioner="murmur2", current=1, target=2),),
)
ENDS: PartitionOffsets = {TOPIC: {0: 10, 1: 20}}


class Killed(BaseException):
    """The process is gone: nothing that it tries afterwards has any effect."""


@dataclass
class GateWorld:
    """The state of green, and what was done to it.

    :param ends: of green's changelogs.
    :param committed: the last offsets that green has committed.
    :param commits: what green commits as soon as it runs. Behind a gate that works, this is nothing.
    :param stops: whether ``stop`` works.
    :param restores: whether green restores up to its ends behind the gate.
    :param patience: ``max_restore_seconds``: within so many seconds green has to restore.
    :param ends_itself: whether green ends by itself when it has restored. The group still counts its members.
    :param pictures: the group's assignments, one for each look. The last one stays.
    :param beats: the texts beside the position of partition 0, one for each look. The last one stays.
    :param refuses: what the gate marks as refused in its group as soon as green runs.
    :param copies: the marks of the copies.
    :param protocol: the group protocol. With ``streams``, each instance behind the gate has groups of its own.
    :param instances: how many instances start behind the gate with ``streams``. The running generation has two.
    :param switch: what is said about the switch.
    :param dies_at: number of the call at which the process is killed, counting from 1. 0 is never.
    """

    journal: Journal = field(default_factory=lambda: Journal(plan=PLAN))
    committed: PartitionOffsets = field(default_factory=dict)
    commits: PartitionOffsets = field(default_factory=dict)
    ends: PartitionOffsets = field(default_factory=lambda: ENDS)
    told: PartitionOffsets = field(default_factory=dict)
    stops: bool = True
    restores: bool = True
    ends_itself: bool = False
    pictures: list[dict[str, frozenset[tuple[str, int]]]] = field(default_factory=list)
    beats: list[str] = field(default_factory=list)
    patience: int = 0
    refuses: str = ""
    marks: dict[str, dict[int, str]] = field(default_factory=dict)
    copies: dict[str, dict[int, str]] = field(default_factory=dict)
    running: bool = False
    members: bool = False
    protocol: str = "classic"
    alone: list[str] = field(default_factory=list)
    heard: int = 0
    instances: int = 2
    shown: list[Any] = field(default_factory=list)
    switch: Switch | None = None
    dies_at: int = 0
    calls: int = 0
    done: list[str] = field(default_factory=list)

    @property
    def application(self) -> Application:
        """An application file that declares ``start_gated``, and waits only as long as a test can."""
        shell = {"type": "shell", "start": "true", "start_gated": "true", "stop": "true", "status": "true"}
        return application("shop", lifecycle=shell).model_copy(update={"max_restore_seconds": self.patience})

    @property
    def rescale(self) -> Any:
        """Stands for a ``Rescale`` over real adapters."""
        lifecycle = SimpleNamespace(
            stop=self._call("stop", self._stop),
            start_gated=self._call("start_gated", self._start),
            is_running=self._call("", lambda _: self.running),
        )
        admin = SimpleNamespace(
            remove_members=self._call("remove_members", self._remove_members),
            delete_group=self._call("delete_group", self._delete_group),
            commit=self._call("commit", lambda *given: self.shown.append(given)),
            groups_like=self._call("", lambda pattern: [g for g in self.alone if re.fullmatch(pattern, g)]),
            committed=self._call("", self._committed),
            committed_metadata=self._call("", self._metadata),
            end_offsets=self._call("", lambda *_, **__: self.ends),
            is_whole=lambda: True,
            begin_offsets=self._call("", lambda topics: {t: {0: 0, 1: 0} for t in topics}),
            describe_group=self._call("", self._described),
        )
        return SimpleNamespace(
            application=self.application,
            connection=None,
            owner="test",
            control=SimpleNamespace(read=self._call("", self._state)),
            lifecycle=lifecycle,
            admin=admin,
            journal=self._call("", lambda: self.journal),
            advance=self._call("advance", self._advance),
            change=self._call("change", self._change),
        )

    def _call(self, name: str, body: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.dies_at and self.calls >= self.dies_at:
                raise Killed
            if name:
                what = "" if callable(arguments[0]) else arguments[0]
                self.done.append(f"{name} {getattr(what, 'application_id', what)}")
            return body(*arguments, **named)

        return call

    def _state(self) -> ControlState:
        lease = Lease(owner="test", epoch=1, target=2, expires_at_ms=0)
        return ControlState(journal=self.journal, lease=lease, switch=self.switch)

    def _start(self, _: Any) -> None:
        assert not self.members, "the start would wait for the session timeout of a member that is gone"
        self.running, self.members = not self.ends_itself, True
        if self.protocol == "streams":
            self.alone = [
                f"{GREEN}-gate-0000000{n}{end}" for n in range(self.instances) for end in ("", "-members")
            ]
        self.committed = {**self.committed, **self.commits}
        self.told = ENDS if self.restores else {}
        if self.refuses:
            self.marks = {"orders": {0: self.refuses}}

    def _stop(self, _: Any) -> None:
        self.running = self.running and not self.stops

    def _remove_members(self, _: str) -> tuple[str, ...]:
        self.members = self.running
        return ("instance-1",) if self.members else ()

    def _delete_group(self, group: str) -> None:
        if group in self.alone:
            self.alone.remove(group)
        elif group == gate_group(GREEN):
            self.told, self.marks = {}, {}
        else:
            self.committed = {}

    def _committed(self, group: str) -> PartitionOffsets:
        return self.told if group in {gate_group(GREEN), *self.alone} else self.committed

    def _metadata(self, group: str) -> dict[str, dict[int, str]]:
        if group == PLAN.copy_group:
            return self.copies
        if group in self.alone:
            self.heard += 1
            return {TOPIC: {0: f"by {group[-8:]} {self.heard}"}}
        if group != gate_group(GREEN):
            return {}
        return {**self.marks, **({TOPIC: {0: _next(self.beats)}} if self.told and self.beats else {})}

    def _described(self, group: str) -> GroupDescription:
        state = "Stable" if self.members else "Empty"
        members = ("i",) if self.members else ()
        assigned = _next(self.pictures) if members and self.pictures else {}
        processes = 2 if self.protocol == "streams" else 0
        return GroupDescription(group, state, members, self.protocol, assigned, processes)

    def _change(self, change: Callable[[Journal], Journal]) -> Journal:
        self.journal = change(self.journal)
        return self.journal

    def _advance(self, phase: Phase, **changes: Any) -> Journal:
        self.journal = self.journal.advanced(phase, now_ms=1, **changes)
        return self.journal


def killed_at_each_call(
    make: Callable[..., GateWorld], run: Callable[[GateWorld], object]
) -> Iterator[tuple[int, GateWorld]]:
    """Yield each call of a whole run, and a world in which the process was killed at it. There it is still dead.

    :param make: makes a world; its argument ``dies_at`` is the number of the call.
    """
    whole = make()
    run(whole)
    assert whole.calls > 10
    for call in range(1, whole.calls + 1):
        world = make(dies_at=call)
        with pytest.raises(Killed):
            run(world)
        yield call, world


def _next(looks: list[T]) -> T:
    return looks.pop(0) if len(looks) > 1 else looks[0]
