"""KIP-663: threads come and go while a client runs."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from kafka_rescale.core.assignment.stream_threads import Decision, StreamsClient
from kafka_rescale.core.assignment.thread_states import State, ThreadState
from kafka_rescale.core.errors import InvalidInput, UnsafeState

UP = (ThreadState.PARTITIONS_ASSIGNED, ThreadState.RUNNING)


def name(index: int) -> str:
    """The name of a client's thread."""
    return f"clientA-StreamThread-{index}"


def names(client: StreamsClient) -> list[str]:
    """The names of all threads that are not dead."""
    return [thread.name for thread in client.threads]


def up(client: StreamsClient) -> StreamsClient:
    """Let every living thread run."""
    for thread in client.alive:
        for state in UP:
            client = client.thread_became(thread.name, state)
    return client


def running(threads: int = 3) -> StreamsClient:
    """A client whose threads run."""
    return up(StreamsClient("clientA").start(threads))


def stopped(client: StreamsClient) -> StreamsClient:
    """Let every thread that shuts down die."""
    ending = [t.name for t in client.threads if t.state is ThreadState.PENDING_SHUTDOWN]
    return reduce(lambda c, thread: c.thread_became(thread, ThreadState.DEAD), ending, client)


def test_a_client_starts_as_many_threads_as_configured_and_runs_when_all_of_them_do() -> None:
    client = StreamsClient("clientA").start(2)
    assert (client.state, names(client)) == (State.REBALANCING, [name(1), name(2)])
    client = client.thread_became(name(1), ThreadState.PARTITIONS_ASSIGNED)
    client = client.thread_became(name(1), ThreadState.RUNNING)
    assert client.state is State.REBALANCING
    assert up(client).state is State.RUNNING


def test_the_name_of_a_new_thread_has_the_next_index() -> None:
    client, added = running(3).add_stream_thread()
    assert added == name(4)
    assert names(client)[-1] == name(4)


def test_a_new_thread_reuses_the_lowest_index_of_a_removed_or_dead_one() -> None:
    client = running(4).thread_failed(name(3), Decision.REPLACE_THREAD)
    client, removed = stopped(client).remove_stream_thread()
    client = stopped(client)
    assert removed == name(1)
    client, first = client.add_stream_thread()
    client, second = client.add_stream_thread()
    client, third = client.add_stream_thread()
    assert [first, second, third] == [name(1), name(3), name(6)]


def test_a_thread_that_is_still_dying_keeps_its_name() -> None:
    """The handler runs in the dying thread, so its replacement can't have its name yet."""
    client = running(3).thread_failed(name(2), Decision.REPLACE_THREAD)
    assert names(client) == [name(1), name(2), name(3), name(4)]
    assert names(stopped(client)) == [name(1), name(3), name(4)]


@pytest.mark.parametrize(
    ("client", "may_change"),
    [
        (StreamsClient("clientA"), False),
        (StreamsClient("clientA").start(1), True),
        (running(), True),
        (running().close(), False),
        (stopped(running().close()), False),
        (running().close_to_error(), False),
        (stopped(running().close_to_error()), False),
    ],
    ids=lambda value: str(value.state) if isinstance(value, StreamsClient) else "",
)
def test_threads_are_added_and_removed_only_while_running_or_rebalancing(
    client: StreamsClient,
    may_change: bool,
) -> None:
    added, new = client.add_stream_thread()
    removed, old = client.remove_stream_thread()
    assert ((new is not None), (old is not None)) == (may_change, may_change)
    if not may_change:
        assert added == removed == client


def test_removing_a_thread_that_does_not_exist_returns_nothing() -> None:
    client, removed = stopped(running(1).remove_stream_thread()[0]).remove_stream_thread()
    assert removed is None
    assert names(client) == []


def test_a_thread_that_is_shutting_down_is_not_removed_again() -> None:
    client, first = running(2).remove_stream_thread()
    client, second = client.remove_stream_thread()
    assert {first, second} == {name(1), name(2)}
    assert client.remove_stream_thread()[1] is None


def test_a_thread_removes_another_one_unless_it_is_the_last() -> None:
    assert running(2).remove_stream_thread(calling=name(1))[1] == name(2)
    assert running(1).remove_stream_thread(calling=name(1))[1] == name(1)


def test_without_its_last_thread_a_client_stays_running_and_goes_on_with_a_new_one() -> None:
    client = stopped(running(1).remove_stream_thread()[0])
    assert (client.state, names(client)) == (State.RUNNING, [])
    client, added = client.add_stream_thread()
    assert (client.state, added) == (State.REBALANCING, name(1))
    client = client.thread_became(name(1), ThreadState.PARTITIONS_ASSIGNED)
    assert client.state is State.REBALANCING
    assert client.thread_became(name(1), ThreadState.RUNNING).state is State.RUNNING


def test_a_new_thread_makes_the_client_rebalance() -> None:
    client, added = running(1).add_stream_thread()
    assert added is not None
    client = client.thread_became(name(1), ThreadState.PARTITIONS_REVOKED)
    assert client.state is State.REBALANCING
    assert up(client).state is State.RUNNING


def test_failed_threads_are_counted_and_removed_ones_are_not() -> None:
    client = stopped(running(2).remove_stream_thread()[0])
    assert client.failed_stream_threads == 0
    client = stopped(client.thread_failed(name(2), Decision.REPLACE_THREAD))
    client = stopped(client.thread_failed(names(client)[0], Decision.REPLACE_THREAD))
    assert client.failed_stream_threads == 2


def test_the_handler_replaces_the_thread() -> None:
    client = stopped(running(2).thread_failed(name(1), Decision.REPLACE_THREAD))
    assert names(client) == [name(2), name(3)]
    assert up(client).state is State.RUNNING


def test_the_handler_shuts_down_the_client() -> None:
    client = running(2).thread_failed(name(1), Decision.SHUTDOWN_CLIENT)
    assert (client.state, client.is_application_ending) == (State.PENDING_ERROR, False)
    assert stopped(client).state is State.ERROR


def test_the_handler_shuts_down_the_application() -> None:
    client = running(2).thread_failed(name(1), Decision.SHUTDOWN_APPLICATION)
    assert (client.state, client.is_application_ending) == (State.PENDING_ERROR, True)
    other = running(2).close_to_error()
    assert (stopped(other).state, other.failed_stream_threads) == (State.ERROR, 0)


def test_the_client_is_in_error_when_its_last_thread_dies_of_an_error() -> None:
    assert stopped(running(1).thread_failed(name(1), Decision.SHUTDOWN_CLIENT)).state is State.ERROR


def test_a_last_thread_that_is_replaced_leaves_its_client_without_error() -> None:
    """Only the handler's answer ends a client, whether the thread was the last one or not (KIP-671)."""
    client = stopped(running(1).thread_failed(name(1), Decision.REPLACE_THREAD))
    assert names(client) == [name(2)]
    assert up(client).state is State.RUNNING


def test_a_client_without_threads_closes_at_once() -> None:
    assert StreamsClient("clientA").close().state is State.NOT_RUNNING
    assert stopped(running(2).close()).state is State.NOT_RUNNING


def test_nothing_is_replaced_while_the_client_shuts_down() -> None:
    client = running(2).close().thread_failed(name(1), Decision.REPLACE_THREAD)
    assert names(client) == [name(1), name(2)]
    assert stopped(client).state is State.NOT_RUNNING


def test_the_number_of_threads_is_not_kept_across_restarts() -> None:
    client = running(2).add_stream_thread()[0]
    with pytest.raises(InvalidInput, match="state RUNNING"):
        client.start(2)
    assert len(StreamsClient("clientA").start(2).threads) == 2


def test_a_report_that_can_not_be_is_refused() -> None:
    with pytest.raises(UnsafeState, match="a report of clientA-StreamThread-9"):
        running(1).thread_became(name(9), ThreadState.DEAD)
    with pytest.raises(UnsafeState, match="a change from RUNNING to DEAD"):
        running(1).thread_became(name(1), ThreadState.DEAD)


STATES = "CREATED REBALANCING RUNNING PENDING_SHUTDOWN NOT_RUNNING PENDING_ERROR ERROR"
ALLOWED = {
    "CREATED": "REBALANCING PENDING_SHUTDOWN",
    "REBALANCING": "RUNNING PENDING_SHUTDOWN PENDING_ERROR",
    "RUNNING": "REBALANCING RUNNING PENDING_SHUTDOWN PENDING_ERROR",
    "PENDING_SHUTDOWN": "NOT_RUNNING",
    "PENDING_ERROR": "ERROR",
}
THREAD_STATES = "CREATED STARTING PARTITIONS_REVOKED PARTITIONS_ASSIGNED RUNNING PENDING_SHUTDOWN DEAD"
THREAD_ALLOWED = {
    "CREATED": "STARTING PENDING_SHUTDOWN",
    "STARTING": "PARTITIONS_REVOKED PARTITIONS_ASSIGNED PENDING_SHUTDOWN",
    "PARTITIONS_REVOKED": "PARTITIONS_REVOKED PARTITIONS_ASSIGNED PENDING_SHUTDOWN",
    "PARTITIONS_ASSIGNED": "PARTITIONS_REVOKED PARTITIONS_ASSIGNED RUNNING PENDING_SHUTDOWN",
    "RUNNING": "PARTITIONS_REVOKED PARTITIONS_ASSIGNED RUNNING PENDING_SHUTDOWN",
    "PENDING_SHUTDOWN": "DEAD",
}


def test_the_states_and_their_changes_are_those_of_kafka_streams() -> None:
    """``KafkaStreams.State`` and ``StreamThread.State``; ``test_assignors_of_kafka_streams.py`` asks them."""
    assert [str(state) for state in State] == STATES.split()
    assert [str(state) for state in ThreadState] == THREAD_STATES.split()
    found = {a: " ".join(b for b in State if a.may_become(b)) for a in State}
    assert {a: b for a, b in found.items() if b} == ALLOWED
    of_threads = {a: " ".join(b for b in ThreadState if a.may_become(b)) for a in ThreadState}
    assert {a: b for a, b in of_threads.items() if b} == THREAD_ALLOWED


class ClientUnderChange(RuleBasedStateMachine):
    """Threads are added, removed and killed in any order, and report their states at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.client = StreamsClient("clientA").start(2)
        self.failed = 0

    @rule()
    def add(self) -> None:
        """Add a thread, and check that it takes the lowest free index."""
        free = next(i for i in range(1, 1000) if name(i) not in names(self.client))
        self.client, added = self.client.add_stream_thread()
        assert added in {None, name(free)}

    @rule()
    def remove(self) -> None:
        """Ask a living thread to end."""
        living = {thread.name for thread in self.client.alive}
        self.client, removed = self.client.remove_stream_thread()
        assert removed is None or removed in living

    @precondition(lambda self: self.client.alive)
    @rule(data=st.data(), decision=st.sampled_from([Decision.REPLACE_THREAD] * 5 + list(Decision)))
    def kill(self, data: st.DataObject, decision: Decision) -> None:
        """Let a thread die of an error."""
        dying = data.draw(st.sampled_from([thread.name for thread in self.client.alive]))
        self.client = self.client.thread_failed(dying, decision)
        self.failed += 1

    @rule()
    def finish(self) -> None:
        """Let threads that shut down die."""
        self.client = stopped(self.client)

    @rule()
    def rebalance(self) -> None:
        """Let all threads run again."""
        self.client = up(self.client)
        if self.client.state.is_running_or_rebalancing and self.client.alive:
            assert self.client.state is State.RUNNING

    @invariant()
    def names_are_unique(self) -> None:
        """No two threads have the same name, and the counter is right."""
        assert len(set(names(self.client))) == len(self.client.threads)
        assert self.client.failed_stream_threads == self.failed

    @invariant()
    def it_ends_when_all_threads_have(self) -> None:
        """A client that shuts down still has threads, or has ended."""
        if not self.client.threads:
            assert self.client.state not in {State.PENDING_ERROR, State.PENDING_SHUTDOWN}


TestClientUnderChange = ClientUnderChange.TestCase
TestClientUnderChange.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
