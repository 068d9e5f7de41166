"""An application that grows in place, as its deployment, the brokers and the control topic see it.

None of them runs.

The process that works on it can die at every call. What must never happen fails at once: a topic that grows before
the point of no return or under a running application, a start before everything has grown, an offset that is set
back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from kafka_rescale.core.cluster import GroupDescription, TopicDescription
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.expansion.offset_metadata import OffsetTexts
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.operations.expansion.rescale import Rescale

from tests.support.expansion.gate_world import Killed
from tests.support.plans import in_place_application, in_place_plan

NAME, OWNER = "orders-app", "test"
OUTPUT = "totals"
BEFORE, AFTER = 4, 8


def _ends(plan: Plan) -> PartitionOffsets:
    topics = [m.source for m in plan.moves] + ["orders", OUTPUT]
    return {topic: {p: 10 + p for p in range(BEFORE)} for topic in topics}


def _committed(plan: Plan) -> PartitionOffsets:
    carried = {m.source: {p: 7 for p in range(BEFORE)} for m in plan.repartitions}
    return {"orders": {p: 10 + p for p in range(BEFORE)}, **carried}


class Following:
    """Follows the results of the jobs that run beside the cutover, as ``ControlFollower`` does."""

    def __init__(self, world: GrowingWorld) -> None:
        self._world, self._known = world, dict[str, tuple[int, JobResult | None]]()

    def heard(self, job: str) -> tuple[int, JobResult | None]:
        """Return the result in the control topic now. Every changed result counts as a sign of life."""
        result = self._world._read().results.get(job)
        count, before = self._known.get(job, (0, None))
        self._known[job] = (count + (result != before), result)
        return self._known[job]

    def close(self) -> None:
        """Close nothing, because nothing is open."""

    def __enter__(self) -> Following:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""


@dataclass
class GrowingWorld:
    """The state of the application, and what was done to it.

    :param ends: ends of every topic, by partition. A topic has as many partitions as there are ends.
    :param offsets: committed offsets, by group.
    :param metadata: what the application has committed beside its offsets.
    :param starts: how often the application was started.
    :param dies_at: number of the call at which the process is killed, counting from 1. 0 is never.
    :param freezes_at: number of the call before which the process freezes once. Then ``meanwhile`` happens.
    :param has_job: whether the move job is alive. ``beats`` counts its signs of life.
    :param refuses: the topic that the brokers refuse to grow.
    :param reads: the topics that its member reads, in one partition each.
    """

    plan: Plan = field(default_factory=in_place_plan)
    running: bool = True
    members: bool = True
    ends: PartitionOffsets = field(default_factory=dict)
    offsets: dict[str, PartitionOffsets] = field(default_factory=dict)
    configs: dict[str, dict[str, str | None]] = field(default_factory=dict)
    metadata: dict[str, dict[int, str]] = field(default_factory=dict)
    ends_at_start: PartitionOffsets = field(default_factory=dict)
    starts: int = 0
    dies_at: int = 0
    freezes_at: int = 0
    meanwhile: Callable[[], object] = lambda: None
    calls: int = 0
    has_job: bool = True
    beats: int = 0
    refuses: str = ""
    reads: tuple[str, ...] = ()
    state: ControlState = field(default_factory=ControlState)

    def __post_init__(self) -> None:
        self.ends, self.offsets = _ends(self.plan), {NAME: _committed(self.plan)}
        lease = Lease(owner=OWNER, epoch=1, target=AFTER, expires_at_ms=2**62)
        self.state = ControlState(journal=Journal(plan=self.plan, owner=OWNER), lease=lease)
        self.rehearse()

    @property
    def journal(self) -> Journal:
        """As the control topic has it."""
        assert self.state.journal is not None
        return self.state.journal

    @property
    def rescale(self) -> Rescale:
        """A ``Rescale`` over all this."""
        lifecycle = {"stop": self._stop, "start": self._start, "is_running": lambda _: self.running}
        control: dict[str, Callable[..., Any]] = {
            "read": self._read,
            "update": self._update,
            "follow": lambda: Following(self),
        }
        admin: dict[str, Callable[..., Any]] = {
            "describe_group": self._group,
            "remove_members": self._remove_members,
            "committed": lambda group, _=None: deepcopy(self.offsets.get(group, {})),
            "committed_metadata": lambda _: deepcopy(self.metadata),
            "commit": self._commit,
            "end_offsets": lambda topics, **_: {t: dict(self.ends[t]) for t in topics},
            "is_whole": lambda: True,
            "begin_offsets": lambda topics, **_: {t: dict.fromkeys(self.ends[t], 0) for t in topics},
            "describe_topics": self._describe,
            "existing_topics": self._describe,
            "alter_configs": lambda topic, changes: self.configs.setdefault(topic, {}).update(changes),
            "grow_topics": self._grow,
            "validate_growth": self._validate,
        }
        made: Any = [
            SimpleNamespace(**{name: self._call(body) for name, body in part.items()})
            for part in (admin, control, lifecycle)
        ]
        nobody: Any = None
        return Rescale(in_place_application(), nobody, *made, owner=OWNER)

    def _read(self) -> ControlState:
        """Read the control topic. The job beside the cutover has left its results there, unless it is dead."""
        if self.has_job and self.plan.is_in_place:
            self._work()
        return self.state

    def _work(self) -> None:
        """Do what the move job does: it is ready before the stop, and done when the topics have grown."""
        have_grown = all(len(self.ends[m.source]) == AFTER for m in self.plan.moves)
        self.beats += 1
        state = "ready" if self.journal.phase is Phase.WARMING else "running"
        if self.journal.phase is Phase.PROMOTED and not self.journal.green_start and have_grown:
            for stage in self.plan.stages:
                self.move(stage.index)
            state = "done"
        if self.journal.green_start:
            state = "done"
        self.put(state)

    def begin_again(self) -> None:
        """Do what the task ``plan`` does when a run is cleared after its rollback: begin the next attempt."""
        assert self.journal.phase is Phase.ROLLED_BACK
        journal = Journal(plan=self.plan, attempt=self.journal.attempt + 1, owner=OWNER)
        self.state = self.state.model_copy(update={"journal": journal})

    def put(self, state: str) -> None:
        """Leave a result of the move job."""
        told = f"attempt {self.journal.attempt}"
        result = JobResult(job="move", run=OWNER, attempt=1, state=state, as_of_ms=self.beats, detail=told)
        self.state = self.state.model_copy(update={"results": {**self.state.results, "move": result}})

    def rehearse(self) -> None:
        """Leave the result of a rehearsal that has seen the whole state as it is now."""
        changelogs = [m.source for m in self.plan.changelogs]
        seen = tuple(
            PartitionProgress(topic=topic, partition=p, position=end, end=end)
            for topic in changelogs
            for p, end in self.ends[topic].items()
        )
        result = JobResult(job="rehearse", run=OWNER, attempt=1, state="done", partitions=seen)
        self.state = self.state.model_copy(update={"results": {**self.state.results, "rehearse": result}})

    def move(self, stage: int) -> None:
        """Do all that the job does for a stage: append records, and commit positions at the captured ends."""
        assert not self.running
        assert self.journal.captured is not None
        positions = self.offsets.setdefault(self.plan.copy_group, {})
        for move in self.plan.stage(stage).growing:
            assert len(self.ends[move.source]) == AFTER
            if move.source not in positions:
                self.ends[move.source] = {p: end + 3 for p, end in self.ends[move.source].items()}
            positions[move.source] = dict(self.journal.captured.ends[move.source])

    def _call(self, body: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.dies_at and self.calls >= self.dies_at:
                raise Killed
            if self.calls == self.freezes_at:
                self.freezes_at = 0
                self.meanwhile()
            return body(*arguments, **named)

        return call

    def _update(self, change: Callable[[ControlState], Mapping[str, Any]]) -> ControlState:
        self.state = self.state.model_copy(update={str(k): v for k, v in change(self.state).items()})
        return self.state

    def _stop(self, _: Any) -> None:
        self.running = False

    def _start(self, _: Any) -> None:
        """Start as Kafka Streams does: it checks the counts of its topics, and works at once."""
        if self.running:
            return
        assert not self.members, "the start would wait for the session timeout of a member that is gone"
        counts = {len(self.ends[t]) for t in ["orders", *(m.source for m in self.plan.moves)]}
        assert len(counts) == 1, "Kafka Streams does not start on such counts"
        self.running = self.members = True
        if counts == {AFTER}:
            self.starts += 1
            self.ends_at_start = self.ends_at_start or deepcopy(self.ends)
            self.offsets[NAME] = {t: {p: o + 1 for p, o in of.items()} for t, of in self.offsets[NAME].items()}
            self.ends = {t: {p: end + 5 for p, end in of.items()} for t, of in self.ends.items()}

    def _grow(self, targets: Mapping[str, int]) -> dict[str, int]:
        short = {topic: len(self.ends[topic]) for topic, n in targets.items() if len(self.ends[topic]) < n}
        for topic, count in short.items():
            if topic != OUTPUT:
                assert self.journal.is_promoted, "a topic that has grown can't shrink"
                assert not self.running, "a running application dies of it"
            self.ends[topic] |= dict.fromkeys(range(count, targets[topic]), 0)
        return short

    def _validate(self, targets: Mapping[str, int]) -> None:
        """Assert that the brokers are asked about every topic that will grow, before the application stops."""
        assert not self.journal.is_promoted
        assert self.running or not self.journal.stop_asked
        own = [m.source for m in self.plan.moves if self.plan.is_in_place]
        assert targets == dict.fromkeys([*own, "orders"], AFTER)
        if self.refuses:
            raise UnsafeState(self.refuses, found="POLICY_VIOLATION", expected="acceptance", remedy="Mend it.")

    def _commit(self, group: str, offsets: PartitionOffsets, metadata: OffsetTexts) -> None:
        if self.members:
            raise UnsafeState(group, found="UNKNOWN_MEMBER_ID", expected="acceptance", remedy="None.")
        assert not self.running
        for topic, of in offsets.items():
            texts = {p: metadata.get(topic, {}).get(p, "") for p in of}
            both = {**self.metadata.get(topic, {}), **texts}
            self.metadata[topic] = {p: text for p, text in both.items() if text}
        known = self.offsets.setdefault(group, {})
        for topic, of in offsets.items():
            for p, offset in of.items():
                assert known.get(topic, {}).get(p, -1) <= offset, "an offset that is set back"
            known[topic] = {**known.get(topic, {}), **of}

    def _remove_members(self, _: str) -> tuple[str, ...]:
        self.members = self.running
        return ("instance-1",) if self.members else ()

    def _group(self, group: str) -> GroupDescription:
        assigned = {"i": frozenset((topic, 0) for topic in self.reads)} if self.members else {}
        return GroupDescription(group, "Stable" if self.running else "Empty", tuple(assigned), assigned=assigned)

    def _describe(self, topics: Iterable[str]) -> dict[str, TopicDescription]:
        overrides = {t: {k: v for k, v in self.configs.get(t, {}).items() if v} for t in topics}
        return {t: TopicDescription(t, len(self.ends[t]), 1, found, found) for t, found in overrides.items()}
