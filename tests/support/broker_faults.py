"""Faults of one broker of three: they hit the broker that matters at the moment that matters."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.operations.expansion.rescale import Rescale

from testbed.cluster import EmbeddedCluster
from testbed.cluster_roles import ClusterRoles
from testbed.expansion import Expansion

Harm = tuple[str, str] | tuple[str, str, float]
"""The kind of harm, the role of the broker, and for how many seconds it is away (default: ``AWAY_SECONDS``)."""
AWAY_SECONDS = {"kill": 10.0, "freeze": 40.0, "stop": 5.0}
"""For so many seconds, a harmed broker is away."""

ROLES: dict[str, Callable[[ClusterRoles, Expansion], int]] = {
    "leader of a changelog": lambda roles, e: roles.leader(_journal(e).plan.changelogs[0].target),
    "coordinator of the copy's group": lambda roles, e: roles.group_coordinator(_journal(e).plan.copy_group),
    "coordinator of the journal's transactions": lambda roles, e: roles.transaction_coordinator(
        f"kafka-rescale-{e.application.application_id}"
    ),
    "leader of the control topic": lambda roles, _: roles.leader("_kafka_rescale"),
    "controller": lambda roles, _: roles.controller(),
}


@dataclass
class Faults:
    """Harms brokers, and remembers what it did for the table that a test prints.

    It harms a broker only while all others are well. So two of three brokers live all the time.
    """

    cluster: EmbeddedCluster
    expansion: Expansion
    done: list[str] = field(default_factory=list)
    rounds: int = 0
    _returns: list[threading.Thread] = field(default_factory=list)

    def harm(self, how: str, role: str, away: float | None = None, *, moment: str) -> None:
        """Kill, freeze or cleanly stop the broker that has a role. Another thread brings it back.

        :param how: of ``AWAY_SECONDS``.
        :param role: of ``ROLES``.
        :param away: seconds until it comes back.
        :param moment: for the table.
        """
        self.await_returned()
        number = ROLES[role](ClusterRoles(self.expansion.connection), self.expansion)
        broker, seconds = self.cluster.nodes[number], AWAY_SECONDS[how] if away is None else away
        if how != "stop":
            getattr(broker, how)()
        self.done.append(f"{moment}: {how}, {seconds:.0f} s, broker {number}, {role}")
        print(self.done[-1], flush=True)

        def come_back() -> None:
            if how == "stop":
                broker.stop()
            time.sleep(seconds)
            if how == "freeze":
                broker.thaw()
            else:
                self.cluster.start_again(number)

        self._returns.append(threading.Thread(target=come_back))
        self._returns[-1].start()

    def restart_each(self) -> None:
        """Restart one broker after the other. The cluster is whole again before the next broker stops."""
        self.await_returned()
        self.cluster.restart_each()
        self.rounds += 1
        self.done.append(f"rolling restart {self.rounds}")

    @contextmanager
    def restarting(self) -> Iterator[None]:
        """Restart one broker after the other, again and again, for as long as the block runs."""
        over = threading.Event()

        def go_on() -> None:
            while not over.is_set():
                self.restart_each()

        with ThreadPoolExecutor(max_workers=1) as pool:
            rounds = pool.submit(go_on)
            try:
                yield
            finally:
                over.set()
            rounds.result()

    def await_returned(self) -> None:
        """Wait until every harmed broker is back, and the cluster is whole."""
        if self._returns:
            self.join()
            self.cluster.await_healthy()

    def join(self) -> None:
        """Wait for the threads that bring brokers back. A test that fails must leave no such thread behind."""
        while self._returns:
            self._returns.pop().join()


@contextmanager
def harmed_at(faults: Faults, phases: Mapping[Phase, Harm]) -> Iterator[list[str]]:
    """Harm a broker as soon as the journal reaches a phase, before the cutover does anything else.

    Before each phase, the cutover waits until the broker of the previous phase is back. Without that, a pause of
    some seconds would be over before the second broker could be harmed.

    :param phases: the harm that is done in each phase.
    :returns: the phases that were seen, in order.
    """
    left, seen = dict(phases), list[str]()
    advance = Rescale.advance

    def advanced(self: Rescale, phase: Phase, **changes: Any) -> Journal:
        journal = advance(self, phase, **changes)
        seen.append(journal.phase.value)
        if (harm := left.pop(journal.phase, None)) is not None:
            faults.harm(*harm, moment=journal.phase.value)
        return journal

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rescale, "advance", advanced)
        yield seen


def _journal(expansion: Expansion) -> Journal:
    journal = expansion.state().journal
    assert journal is not None
    return journal
