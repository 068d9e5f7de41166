"""The flights application at work on its own broker. It has built up state, and input arrives all the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from benchmarks.flights_at_scale import flights_at_scale
from benchmarks.sizes import BEFORE, Sizes
from testbed.broker import EmbeddedBroker
from testbed.flights import Dataset
from testbed.flights_stack import FlightsStack, environment_of
from testbed.processes import wait_until
from testbed.replay import Replay
from testbed.topics import FLIGHTS, PLANES, create_inputs, create_outputs

REPARTITIONS = ("by-aircraft-repartition", "by-airport-repartition")
STORES = ("planes", "aircraft-totals", "aircraft-sessions", "airport-hourly")
CATCH_UP_SECONDS = 1200.0

# By default, output leaves the cache only every 30 s, so "caught up" could not be measured more precisely.
OPTIONS = {"FLIGHTS_OPTIONS": "--commit-interval-ms 1000", "FLIGHTS_HEAP": "768m"}


# The producer outlives its broker by a moment. Its errors then are not interesting.
QUIET = {"log_level": 2}


@dataclass
class LiveApplication:
    """The application, its cluster and its input.

    :param preloaded: flights that it has processed before the measurement.
    """

    stack: FlightsStack
    connection: KafkaConnection
    replay: Replay
    dataset: Dataset
    preloaded: int
    _sending: Future[None] | None = None
    _pool: ThreadPoolExecutor | None = None

    @property
    def admin(self) -> ClusterAdmin:
        """For questions to the broker."""
        return ClusterAdmin(self.connection)

    def await_processed(self, application_id: str, inputs: PartitionOffsets) -> None:
        """Wait until the application has processed its input up to these ends, and all that followed from it."""
        self._await_committed(application_id, inputs)
        internal = [f"{application_id}-{name}" for name in REPARTITIONS]
        self._await_committed(application_id, self.admin.end_offsets(internal))

    def await_state(self, application_id: str) -> None:
        """Wait until the application has written state.

        Do not ask about its group before. On a new broker whose group coordinator is still loading, librdkafka
        2.16 crashes (its issue #5040) or waits forever.
        """
        wait_until(
            lambda: self.state_records(application_id), timeout=CATCH_UP_SECONDS, what=f"state of {application_id}"
        )

    def state_records(self, application_id: str) -> int:
        """Return the number of records in its changelogs."""
        changelogs = [f"{application_id}-{store}-changelog" for store in STORES]
        return sum(sum(ends.values()) for ends in self.admin.end_offsets(changelogs).values())

    def send(self, rate: float) -> None:
        """Go on sending flights at a rate, in the background."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="flights")
        self._sending = self._pool.submit(self.replay.send_at_rate, rate, lambda sent: None)

    def stop_sending(self) -> None:
        """Stop sending, and raise an error of the sender."""
        self.replay.stopping = True
        if self._pool is not None and self._sending is not None:
            self._pool.shutdown()
            self._sending.result()
        self.replay.flush()

    def finished(self, application_id: str) -> Dataset:
        """Stop sending, let the application process the rest, and return the flights that were sent."""
        self.stop_sending()
        assert self.replay.sent < len(self.dataset.flights), "the input ended while it was measured"
        self.await_processed(application_id, self.admin.end_offsets([FLIGHTS, PLANES]))
        return self.dataset.prefix(self.replay.sent)

    def _await_committed(self, group: str, ends: PartitionOffsets) -> None:
        admin = self.admin

        def reached() -> bool:
            committed = admin.committed(group)
            return all(
                committed.get(t, {}).get(p, 0) >= end for t, by_p in ends.items() for p, end in by_p.items()
            )

        wait_until(reached, timeout=CATCH_UP_SECONDS, what=f"{group} to reach {ends}", poll_seconds=0.2)


@contextmanager
def live_application(
    directory: Path, sizes: Sizes, copies: int, tell: Callable[[str], None]
) -> Iterator[LiveApplication]:
    """Build up the state of the application, and then let input arrive at a steady rate."""
    dataset, preload = flights_at_scale(sizes, copies)
    with EmbeddedBroker(directory / "broker") as broker:
        stack = FlightsStack(directory / "flights", broker.bootstrap_servers, partitions=BEFORE, settings=OPTIONS)
        live = LiveApplication(
            stack,
            KafkaConnection(broker.client_config()),
            Replay({**stack.client, **QUIET}, dataset),
            dataset,
            preload,
        )
        create_inputs(stack.client, BEFORE)
        create_outputs(stack.client, BEFORE)
        live.replay.send_planes()
        live.replay.send_at_once(preload)
        live.replay.flush()
        with environment_of(stack):
            try:
                assert stack.run("start") == 0
                live.await_state("flights")
                live.await_processed("flights", live.admin.end_offsets([FLIGHTS, PLANES]))
                tell(f"{preload:,} flights processed, {live.state_records('flights'):,} changelog records")
                live.send(sizes.flights_per_second)
                yield live
            finally:
                live.replay.stopping = True
                stack.stop("flights", "flights-g2")
