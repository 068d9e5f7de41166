"""Which thread runs which task in the next run: the rebalance of clients (KIP-429, KIP-441, KIP-663, KIP-708).

Runs of a pipeline don't overlap, so between two runs no thread should be processing. If a thread has never
reported its end, it may still be processing: then tasks that move are revoked first, and given away in a second
rebalance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kafka_rescale.core.assignment.assignment import Assignment, ClientTasks
from kafka_rescale.core.assignment.configs import RACK, AssignmentConfigs
from kafka_rescale.core.assignment.cooperative import HandOver, hand_over
from kafka_rescale.core.assignment.high_availability import assign
from kafka_rescale.core.assignment.over_threads import over_threads
from kafka_rescale.core.assignment.rack_standbys import RackStandbys, RackStandbyTaskAssignor
from kafka_rescale.core.assignment.stream_threads import StreamsClient
from kafka_rescale.core.assignment.tasks import Client, TaskId, Tasks
from kafka_rescale.core.assignment.thread_states import State, ThreadState
from kafka_rescale.core.assignment.validation import require_valid
from kafka_rescale.core.control.processing import ClientRecord, MovementRecord, Processing
from kafka_rescale.core.errors import Refused


@dataclass(frozen=True)
class Member:
    """What a client reports of itself at a rebalance.

    :param state_dir: where its state lies.
    :param lags: how many records its state is behind, per stateful task of which it has state.
    :param absent: why it can't take part; empty if it can.
    """

    client_id: str
    num_stream_threads: int
    state_dir: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    lags: Mapping[TaskId, int] = field(default_factory=dict)
    absent: str = ""


@dataclass(frozen=True)
class Rebalance:
    """One rebalance.

    :param run: the run that gets the assignment.
    :param at_ms: wall clock.
    :param tasks: all tasks of the pipeline.
    :param members: every client of the application file; a client that is no longer in the file is gone.
    :param rack_assignor: a rule of the user's own for the racks of standbys.
    """

    run: str
    at_ms: int
    tasks: Tasks
    members: Sequence[Member]
    configs: AssignmentConfigs = field(default_factory=AssignmentConfigs)
    rack_assignor: RackStandbyTaskAssignor | None = None

    def of(self, before: Processing | None, at_work: Collection[str] = ()) -> Processing:
        """Return which thread runs which task from now on.

        Added threads get their tasks, removed threads are gone. A client starts anew if the file gives it another
        number of threads, or if it was away. Threads that were added to it or removed from it are then forgotten
        (KIP-663).

        :param before: record of the run before; None for the first run.
        :param at_work: names of threads that may still be processing what ``before`` gave them.
        :raises Refused: no client can take part.
        :raises InvalidInput: the user's rule for racks has failed.
        :raises UnsafeState: the assignor's decision breaks a rule of KIP-924; nothing changes.
        """
        before = before or Processing()
        records = {m.client_id: _joined(before.client(m.client_id), m) for m in self.members}
        if not any(_is_member(record) for record in records.values()):
            raise _nobody(records.values())
        owned = before.owned(at_work)
        target = self._target(records)
        step = hand_over(owned, target)
        changed = [_given(records[m.client_id], before, step) for m in self.members]
        movements = [
            MovementRecord(**{**vars(movement), "task": str(movement.task)}) for movement in target.movements
        ]
        counts = Counter(task.subtopology for task in self.tasks.all)
        return Processing(
            run=self.run,
            at_ms=self.at_ms,
            tasks=dict(sorted(counts.items())),
            clients=tuple(changed),
            movements=tuple(movements),
            revoked=tuple(sorted({str(task) for tasks in step.revoke.values() for task in tasks})),
            adjusted_by=before.adjusted_by,
        )

    def _target(self, records: Mapping[str, ClientRecord]) -> Assignment:
        lags = {member.client_id: member.lags for member in self.members}
        clients = [
            Client(name, len(record.running), lags[name], record.tags)
            for name, record in records.items()
            if record.running and _is_member(record)
        ]
        if not clients:
            return Assignment({})
        standbys = None
        if self.rack_assignor is not None:
            standbys = RackStandbys({client.id: client.tags[RACK] for client in clients}, self.rack_assignor)
        assignment = assign(self.tasks, clients, self.configs, standbys)
        require_valid(assignment, self.tasks, [client.id for client in clients])
        return assignment


_CAN_JOIN = frozenset({State.CREATED, State.REBALANCING, State.RUNNING})
"""Clients in other states have ended, and take part only when they are started again."""


def _is_member(record: ClientRecord) -> bool:
    return not record.absent and record.state.is_running_or_rebalancing


def _joined(before: ClientRecord | None, member: Member) -> ClientRecord:
    """Return a client as it comes to a rebalance."""
    known = before or ClientRecord(client_id=member.client_id)
    if member.absent and known.state in _CAN_JOIN:
        # An absent client keeps its state_dir: by that it is recognised when it comes back.
        gone = {"state": State.CREATED, "threads": (), "standbys": (), "absent": member.absent}
        return known.model_copy(update=gone)
    client, threads = known.client, known.num_stream_threads
    if known.state is State.CREATED or (known.state in _CAN_JOIN and threads != member.num_stream_threads):
        threads = member.num_stream_threads
        client = StreamsClient(member.client_id).start(threads)
    said = {"state_dir": member.state_dir, "tags": dict(member.tags), "absent": "", "num_stream_threads": threads}
    return known.model_copy(update=said).with_client(settled(client))


def _given(record: ClientRecord, before: Processing, step: HandOver) -> ClientRecord:
    """Return a client with what a rebalance gives it."""
    has = step.assigned.get(record.client_id, ClientTasks())
    names = list(record.running)
    known = before.client(record.client_id)
    previous = {t.name: list(map(TaskId.parse, t.tasks)) for t in known.threads} if known else {}
    dealt = over_threads(has.active, names, previous) if names else {}
    client = record.client
    # A client that has to give tasks back first gets free tasks only in the second rebalance.
    if step.revoke.get(record.client_id):
        for name in names:
            client = client.thread_became(name, ThreadState.PARTITIONS_REVOKED)
    given = record.with_client(client, dealt)
    return given.model_copy(update={"standbys": tuple(map(str, has.standby))})


def settled(client: StreamsClient) -> StreamsClient:
    """Return a client without the threads that were asked to end, and with all others running."""
    for thread in client.threads:
        if thread.state is ThreadState.PENDING_SHUTDOWN:
            client = client.thread_became(thread.name, ThreadState.DEAD)
    return started(client)


def started(client: StreamsClient) -> StreamsClient:
    """Return a client whose starting threads run; threads that were asked to end are left to their end."""
    for thread in client.threads:
        for state in _TO_RUNNING.get(thread.state, ()):
            client = client.thread_became(thread.name, state)
    return client


_TO_RUNNING: Mapping[ThreadState, tuple[ThreadState, ...]] = {
    ThreadState.STARTING: (ThreadState.PARTITIONS_ASSIGNED, ThreadState.RUNNING),
    ThreadState.PARTITIONS_REVOKED: (ThreadState.PARTITIONS_ASSIGNED, ThreadState.RUNNING),
}


def _nobody(records: Collection[ClientRecord]) -> Refused:
    found = (f"{record.client_id}: {record.absent or record.state}" for record in records)
    return Refused(
        "clients of the pipeline",
        found="; ".join(found),
        expected="one that can take part in the run",
        remedy="See why they ended in the logs of their threads, then start one: `start-client`. One that is "
        "absent takes part again as soon as its state.dir is there.",
    )
