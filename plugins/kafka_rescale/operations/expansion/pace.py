"""What people order about the pace of an expansion in progress: a limit, a pause, or to resume."""

from __future__ import annotations

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.pace import Instruction, Pace
from kafka_rescale.core.control.records import Change
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.expansion.pacing_say import PAUSE, said
from kafka_rescale.core.expansion.pacing_words import told_pace
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.lease import update_despite_races
from kafka_rescale.operations.expansion.switch import tombstone_ms


def say_pace(
    application: Application,
    connection: KafkaConnection,
    action: str,
    *,
    by: str,
    bytes_per_second: int | None = None,
    reason: str = "",
    asked_ms: int | None = None,
) -> str:
    """Record what a person orders about the pace, and return what holds now. The jobs hear of it within seconds.

    :param action: one of ``pacing_say.ACTIONS``.
    :param bytes_per_second: for ``limit``; None removes the limit.
    :param asked_ms: when the person has asked for it, in ms since the epoch; None for now.
    :raises Refused: nothing is copied, the application is stopped or is about to be stopped, or the attempt or
        another person's word is younger than this one.
    """
    control = ControlTopic(connection, application.application_id)
    word = Instruction(by=by, at_ms=now_ms(), reason=reason.strip(), asked_for_ms=asked_ms or 0)

    def changed(state: ControlState) -> Pace:
        return said(state, application.application_id, action, word, bytes_per_second)

    # Read first, so that an order that is refused fences no other process.
    state = control.read()
    found = changed(state)
    kept_ms = found.tombstone_ms
    if action == PAUSE and state.journal is not None:
        kept_ms = tombstone_ms(connection, state.journal.plan)

    def change(present: ControlState) -> Change:
        pace = changed(present).model_copy(update={"tombstone_ms": kept_ms})
        return {Concern.PACE: pace} if pace != present.pace else {}

    return told_pace(update_despite_races(control, change)) or "Nothing limits the copy."
