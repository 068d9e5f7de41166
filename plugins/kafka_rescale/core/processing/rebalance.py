"""The rebalance of clients: which thread runs which task in the next run (KIP-429, KIP-441, KIP-663, KIP-708).

Runs of a pipeline don't overlap, so between two runs no thread should be processing. A thread that has never
reported its end may still be processing. Then a first rebalance revokes the tasks that have to move away from it,
and a second rebalance gives them to other threads.
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
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.control.processing import ClientRecord, MovementRecord, Processing
from kafka_rescale.core.errors import Refused


@dataclass(frozen=True)
class Member:
    """The report of a client at a rebalance.

    :param state_dir: the directory of the client's state.
    :param lags: by stateful task of which the client has state, how many records this state is behind.
    :param absent: the reason why the client can't take part. Empty if it can.
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
    :param at_ms: the wall clock.
    :param tasks: all tasks of the pipeline.
    :param members: every client of the application file. The rebalance forgets all other clients.
    :param rack_assignor: the user's own rule for the racks of standbys.
    :param input_ends: up to where the run reads the inputs, by full names.
    """

    run: str
    at_ms: int
    tasks: Tasks
    members: Sequence[Member]
    configs: AssignmentConfigs = field(default_factory=AssignmentConfigs)
    rack_assignor: RackStandbyTaskAssignor | None = None
    input_ends: PartitionOffsets = field(default_factory=dict)

    def of(self, before: Processing | None, at_work: Collection[str] = ()) -> Processing:
        """Return which thread runs which task from now on.

        Added threads get tasks, and removed threads are gone. A client starts anew if the file gives it another
        number of threads, or if it was absent. Then it has as many threads as the file says: the record forgets
        that threads were added to the client or removed from it (KIP-663).

        :param before: the record of the run before. None for the first run.
        :param at_work: names of threads that may still be processing the tasks that ``before`` gave them.
        :raises Refused: no client can take part.
        :raises InvalidInput: the user's rule for racks has failed.
        :raises UnsafeState: the assignor's decision breaks a rule of KIP-924. Then nothing changes.
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
            changed_threads=before.changed_threads,
            missing={str(task): lacks for task, lacks in sorted(target.missing.items())},
            input_ends=self.input_ends,
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
            racks = {client.id: client.tags[RACK] for client in clients}
            # The user's rule may name racks of the file whose clients are all absent now.
            declared = {member.tags[RACK] for member in self.members if RACK in member.tags}
            standbys = RackStandbys(racks, self.rack_assignor, declared)
        assignment = assign(self.tasks, clients, self.configs, standbys)
        require_valid(assignment, self.tasks, [client.id for client in clients])
        return assignment


CAN_JOIN = frozenset({State.CREATED, State.REBALANCING, State.RUNNING})
"""Clients in other states have ended. They take part again only after a user has started them again."""


def _is_member(record: ClientRecord) -> bool:
    return not record.absent and record.state.is_running_or_rebalancing


def _joined(before: ClientRecord | None, member: Member) -> ClientRecord:
    """Return the record of a client at the start of a rebalance."""
    known = before or ClientRecord(client_id=member.client_id)
    if member.absent and known.state in CAN_JOIN:
        # An absent client keeps its state_dir in the record. This identifies the client when it comes back.
        gone = {"state": State.CREATED, "threads": (), "standbys": (), "absent": member.absent}
        return known.model_copy(update=gone)
    client, threads = known.client, known.num_stream_threads
    if known.state is State.CREATED or (known.state in CAN_JOIN and threads != member.num_stream_threads):
        threads = member.num_stream_threads
        client = StreamsClient(member.client_id).start(threads)
    said = {"state_dir": member.state_dir, "tags": dict(member.tags), "absent": "", "num_stream_threads": threads}
    return known.model_copy(update=said).with_client(settled(client))


def _given(record: ClientRecord, before: Processing, step: HandOver) -> ClientRecord:
    """Return the record of a client with the tasks that a rebalance gives it."""
    has = step.assigned.get(record.client_id, ClientTasks())
    names = list(record.running)
    known = before.client(record.client_id)
    previous = {t.name: list(map(TaskId.parse, t.tasks)) for t in known.threads} if known else {}
    dealt = over_threads(has.active, names, previous) if names else {}
    client = record.client
    # If a client has to give tasks back first, it gets free tasks only in the second rebalance.
    if step.revoke.get(record.client_id):
        for name in names:
            client = client.thread_became(name, ThreadState.PARTITIONS_REVOKED)
    given = record.with_client(client, dealt)
    return given.model_copy(update={"standbys": tuple(map(str, has.standby))})


def settled(client: StreamsClient) -> StreamsClient:
    """Return a client whose threads all run. Threads that were asked to end are gone."""
    for thread in client.threads:
        if thread.state is ThreadState.PENDING_SHUTDOWN:
            client = client.thread_became(thread.name, ThreadState.DEAD)
    return started(client)


def started(client: StreamsClient) -> StreamsClient:
    """Return a client whose starting threads run. Threads that were asked to end keep their state."""
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
        remedy="See in the logs of their threads why they ended, then start a client by `start-client`. An absent "
        "client takes part again as soon as its state.dir is there.",
    )
