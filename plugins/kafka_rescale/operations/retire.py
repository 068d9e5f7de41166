"""Delete what is left of the previous generation; only ever by an explicit run of its own."""

from __future__ import annotations

from kafka_rescale.core.application import Application
from kafka_rescale.core.control_records import ControlState, Generations
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.journal import Journal, Phase
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.operations.rescale import Rescale, blue


def retire(application: Application, connection: KafkaConnection, *, owner: str) -> list[str]:
    """Delete the internal topics and the group of the generation before the running one.

    :returns: the topics that were deleted.
    :raises Refused: the last expansion is not complete or has left nothing, or the old generation runs.
    """
    rescale = Rescale.open(application, connection, owner)
    state = rescale.control.read()
    journal = _completed(application, state)
    _assert_apart(journal)
    if rescale.is_alive(blue(journal.plan)):
        raise Refused(
            f"application {journal.plan.blue}",
            found="a running instance",
            expected="none: its state is about to be deleted",
            remedy="Stop it first.",
        )
    existing = rescale.admin.list_topics()
    doomed = sorted(m.source for m in journal.plan.moves if m.source in existing)
    rescale.admin.delete_topics(doomed)
    for group in (journal.plan.blue, journal.plan.copy_group):
        rescale.admin.delete_group(group)
    _record(rescale, journal.plan.blue)
    return doomed


def _completed(application: Application, state: ControlState) -> Journal:
    journal = state.journal
    if journal is None or journal.phase is not Phase.COMPLETE:
        raise Refused(
            f"application {application.application_id}",
            found=f"phase {journal.phase.value if journal else 'none'}",
            expected="a complete, verified expansion",
            remedy="Finish the expansion first; nothing has been deleted.",
        )
    return journal


def _assert_apart(journal: Journal) -> None:
    """In place, the previous generation's topics and group are those of the running one."""
    if journal.plan.is_in_place:
        raise Refused(
            f"application {journal.plan.application}",
            found="an expansion in place, whose topics are those of the running application",
            expected="a previous generation with topics of its own",
            remedy="Nothing has to be deleted, and nothing has been.",
        )


def _record(rescale: Rescale, retired: str) -> None:
    def change(state: ControlState) -> dict[str, Generations]:
        generations = state.generations
        if generations is None or retired in generations.retired:
            return {}
        return {"generations": generations.model_copy(update={"retired": (*generations.retired, retired)})}

    rescale.control.update(change)
