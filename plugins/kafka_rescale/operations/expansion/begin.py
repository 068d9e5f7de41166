"""The first change of a run: the lease and the journal of the expansion."""

from __future__ import annotations

from collections.abc import Callable

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.journal import BLUE_STOPPED, Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.prediction import Prediction
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control import journal_store, lease
from kafka_rescale.kafka.copy.bridging import assert_ended
from kafka_rescale.operations.cutover.held import send_away
from kafka_rescale.operations.expansion.compaction import still_held
from kafka_rescale.operations.expansion.opening import Opening
from kafka_rescale.operations.expansion.rescale import LEASE_MS, Rescale
from kafka_rescale.operations.expansion.rollback import roll_back
from kafka_rescale.operations.expansion.warm_up_gate import close_gate
from kafka_rescale.operations.modes.choice import mode_of


def begin(
    application: Application,
    connection: KafkaConnection,
    plan: Plan,
    *,
    owner: str,
    now_ms: int,
    owner_is_finished: Callable[[Lease], bool | None],
    airflow: str = "",
    triggered_by: str = "",
    predicted: Prediction | None = None,
) -> Journal:
    """Take the lease and write or continue the journal.

    If a run died while blue was stopped, it is rolled back first: blue must not stay down while copies go on. If a
    run died during a pre-warming, or before the pause, green is stopped behind the gate.

    :param airflow: the Airflow that the owner is a run of.
    :param triggered_by: the person who has triggered that run. The history keeps it, and ``predicted``.
    :raises LeaseHeld: another run that has not ended rescales this application.
    :raises Refused: an expansion with another plan is in progress, or the bridge of the last one has not ended.
    """
    rescale = Rescale.open(application, connection, owner, airflow)
    rescale.control.ensure()
    assert_ended(connection, rescale.control.read(), plan)
    lease.acquire(
        rescale.control,
        owner,
        plan.partitions,
        now_ms=now_ms,
        ttl_ms=LEASE_MS,
        owner_is_finished=owner_is_finished,
        airflow=airflow,
    )
    journal = rescale.control.read().journal
    if journal is not None and journal.phase in {*BLUE_STOPPED, Phase.ROLLING_BACK}:
        why = f"{owner} takes over an interrupted cutover"
        roll_back(application, connection, owner=owner, reason=why, airflow=airflow)
    if journal is not None and journal.phase is Phase.ROLLED_BACK:
        mode_of(journal.plan).roll_back(rescale, still_held(rescale, journal))
    journal = journal_store.begin(
        rescale.control,
        plan,
        owner,
        now_ms=now_ms,
        triggered_by=triggered_by,
        predicted=predicted,
        pacing=application.pacing,
        free_disk_percent=application.free_disk_percent,
    )
    if journal.phase is Phase.WARMING:
        if journal.gate_ends:
            journal = Opening.take(rescale, journal).assert_held()
            close_gate(rescale, journal)
        journal = send_away(rescale, journal)
    return journal
