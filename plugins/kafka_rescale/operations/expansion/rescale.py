"""One expansion of one owner: the adapters, and the journal, which is written under the lease."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, Outage
from kafka_rescale.core.expansion.lost_records import lost_records, no_journal
from kafka_rescale.core.values import Value
from kafka_rescale.core.verify.kept import kept_of
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.lease import renewed, update_despite_races
from kafka_rescale.lifecycle.factory import lifecycle_of
from kafka_rescale.lifecycle.instance import Instance, Lifecycle

LEASE_MS = 24 * 3600 * 1000
"""If an owner can't be asked whether it has finished, its lease lasts a day after its last step."""

Records = Callable[[ControlState], Mapping[str, Value | None]]
"""Returns the records to write beside the journal, from the present state; ``None`` deletes a record."""


@dataclass
class Rescale:
    """The adapters and the application that every step needs.

    :param owner: the run that must hold the lease for anything to be changed.
    :param airflow: the Airflow that the owner is a run of; empty if that is not known.
    :param attempt: the attempt that may be changed, as the last journal of it that is known; None if it may be any
        attempt. A run that is cleared has several attempts, and the lease does not tell them apart.
    """

    application: Application
    connection: KafkaConnection
    admin: ClusterAdmin
    control: ControlTopic
    lifecycle: Lifecycle
    owner: str
    airflow: str = ""
    attempt: Journal | None = None

    @classmethod
    def open(cls, application: Application, connection: KafkaConnection, owner: str, airflow: str = "") -> Rescale:
        """Return a rescale over real adapters, without contacting the cluster yet."""
        admin = ClusterAdmin(connection)
        return cls(
            application=application,
            connection=connection,
            admin=admin,
            control=ControlTopic(connection, application.application_id),
            lifecycle=lifecycle_of(application, lambda group: admin.describe_group(group).is_live),
            owner=owner,
            airflow=airflow,
        )

    def is_alive(self, instance: Instance) -> bool:
        """Whether an instance runs, according to its deployment or its group."""
        return self.lifecycle.is_running(instance) or self.admin.describe_group(instance.application_id).is_live

    def assert_up(self, instance: Instance) -> None:
        """Check that an instance runs, as its deployment and its group say.

        :raises Outage: it doesn't run, although its start command has returned.
        """
        signs = {
            "its status is stopped": self.lifecycle.is_running(instance),
            "its group has no members": self.admin.describe_group(instance.application_id).is_live,
        }
        if not all(signs.values()):
            raise Outage(
                f"application {instance.application_id}",
                found=" and ".join(sign for sign, is_fine in signs.items() if not is_fine),
                expected="a running application: it owns the inputs",
                remedy="NOBODY PROCESSES THEM. Its own log says why: rights of its new application.id, a quota, "
                "an image. START IT BY HAND NOW, then clear the failed task.",
            )

    def journal(self) -> Journal:
        """Return the journal, provided that this owner still holds the lease, and that no later attempt has begun.

        :raises Fenced: another run has taken over, or another attempt has begun.
        :raises UnsafeState: no expansion has begun, or the control topic has lost its records.
        """
        return self._owned(self.control.read())

    def advance(self, phase: Phase, *, records: Records | None = None, **changes: object) -> Journal:
        """Write the journal's next phase in one transaction, together with other records if given."""
        return self.change(lambda journal: journal.advanced(phase, now_ms=now_ms(), **changes), records)

    def end(self, phase: Phase) -> Journal:
        """Write that the attempt has ended, and what is kept of it, in one transaction."""
        return self.advance(phase, records=lambda state: kept_of(state, phase, now_ms()))

    def change(self, change: Callable[[Journal], Journal], records: Records | None = None) -> Journal:
        """Write the changed journal in one transaction, together with other records if given.

        The same compare-and-set checks the lease and the attempt, so a process that was overtaken changes nothing.

        :param change: gets the present journal and returns the new one. If it raises, nothing is written.
        :param records: gets the present control state and returns further records.
        """

        def under_lease(state: ControlState) -> Mapping[str, Value | None]:
            journal = change(self._owned(state))
            assert state.lease is not None
            lease = renewed(state.lease, now_ms(), LEASE_MS)
            return {**(records(state) if records else {}), Concern.JOURNAL: journal, Concern.LEASE: lease}

        # After Fenced nothing was written. Perhaps a person's word came in between, or a try that is about to end.
        # Only the lease tells whether another run has taken over.
        return self._owned(update_despite_races(self.control, under_lease, lost=(Fenced,)))

    def _owned(self, state: ControlState) -> Journal:
        lease, journal = state.lease, state.journal
        if journal is None or lease is None:
            raise lost_records(self.attempt) if self.attempt else no_journal(self.application.application_id)
        is_ours = lease.is_of(self.owner, self.airflow)
        if lease.released and is_ours and journal.phase is Phase.COMPLETE:
            raise Fenced(
                f"expansion of {self.application.application_id}",
                found=f"phase {journal.told}: {self.owner} has done everything, and given the lease back",
                expected="an expansion in progress",
                remedy="Nothing is left to be done, and nothing was touched: mark the task as success.",
            )
        if lease.released or not is_ours:
            elsewhere = f" of Airflow {lease.airflow}" if lease.is_of_another(self.airflow) else ""
            raise Fenced(
                f"lease of {self.application.application_id}",
                found=f"owner {lease.owner}{elsewhere}{' (released)' if lease.released else ''}",
                expected=f"{self.owner}{f' of Airflow {self.airflow}' if elsewhere else ''}",
                remedy="Another run has taken over or this one was rolled back; trigger a new run to continue.",
            )
        if self.attempt is not None and not journal.is_same_attempt(self.attempt):
            raise Fenced(
                f"expansion of {self.application.application_id}",
                found=f"attempt {journal.attempt}, phase {journal.told}",
                expected=f"attempt {self.attempt.attempt}, which this process has begun with",
                remedy="Nothing to do here: that attempt was rolled back, and what is in the journal goes on.",
            )
        return journal


def running_instance(
    application: Application, generations: Generations | None, counts: Iterable[int] = ()
) -> Instance:
    """Return the instance set of the generation that owns the inputs, when no expansion is in progress.

    :param generations: None means that the first generation runs.
    :param counts: present counts of the topics whose counts follow from ``{partitions}`` of the start command.
        They tell the count that the first generation was started with; the file has the count that its expansion
        aims at.
    """
    inputs = {i.topic: i.topic for i in application.inputs}
    if generations is None:
        return Instance(application.application_id, 1, max(counts, default=application.partitions), inputs)
    running = Instance(generations.running, generations.generation, generations.partitions)
    return replace(running, inputs={**inputs, **generations.inputs})
