"""Delete what is left of earlier generations. Only an explicit run of its own does this."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.expansion.late_words import assert_about
from kafka_rescale.core.expansion.retirement import Remains, remains
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.lifecycle.instance import Instance
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.modes.choice import mode_of

log = logging.getLogger(__name__)


def retire(
    application: Application,
    connection: KafkaConnection,
    *,
    owner: str,
    dry_run: bool = False,
    airflow: str = "",
    asked_ms: int | None = None,
) -> dict[str, list[str]]:
    """Delete the internal topics and the groups of every generation before the running one.

    This may be killed at any instruction and called again.

    :param dry_run: only report what would be deleted.
    :param airflow: the Airflow that the owner is a run of; empty if that is not known.
    :param asked_ms: when a person has asked for it, in ms since the epoch; None for now. A generation that became
        old later was not meant.
    :returns: the topics per ``application.id``, the oldest first.
    :raises Refused: the running generation is not proven, an expansion from it is in progress, an old generation
        runs, or an expansion has begun since this was asked for; in place, nothing is ever left.
    """
    rescale = Rescale.open(application, connection, owner, airflow)
    journal, generations = _proven(application, rescale.control.read())
    assert_about(f"retirement of {application.application_id}", journal, asked_ms)
    topology = topology_of(application)
    found = remains(application, topology, generations, journal.plan, rescale.admin.list_topics())
    if not found:
        mode_of(journal.plan).assert_leaves_topics(journal.plan)
        log.info("nothing is left of earlier generations of %s", application.application_id)
    _assert_stopped(rescale, journal, found)
    for each in found:
        log.info("%s of %s: %s", "would delete" if dry_run else "deleting", each.application_id, each.topics)
        if not dry_run:
            _delete(rescale, each)
    return {each.application_id: list(each.topics) for each in found}


def _proven(application: Application, state: ControlState) -> tuple[Journal, Generations]:
    """Return the control state if the running generation was verified and no expansion is in progress."""
    journal, generations = state.journal, state.generations
    if journal is None or generations is None or not _is_settled(journal, generations):
        raise Refused(
            f"application {application.application_id}",
            found=f"phase {journal.told if journal else 'none'}",
            expected="a complete, verified expansion",
            remedy="Finish the expansion first; nothing has been deleted.",
        )
    return journal, generations


def _is_settled(journal: Journal, generations: Generations) -> bool:
    if journal.phase is Phase.ROLLED_BACK:
        # This expansion could only begin when the one before was complete. So what was proven then still holds.
        return journal.plan.generation > generations.generation
    return journal.phase is Phase.COMPLETE


def _assert_stopped(rescale: Rescale, journal: Journal, found: Sequence[Remains]) -> None:
    inputs = {i.declared: i.topic for i in journal.plan.inputs}
    for each in found:
        partitions = max(t.partitions for t in rescale.admin.existing_topics(each.topics).values())
        if rescale.is_alive(Instance(each.application_id, each.generation, partitions, inputs)):
            raise Refused(
                f"application {each.application_id}",
                found="a running instance",
                expected="no running instance: its state is about to be deleted",
                remedy="Stop it first; nothing has been deleted.",
            )


def _delete(rescale: Rescale, old: Remains) -> None:
    # Groups first: as long as there are topics, a run that follows a killed run still finds the generation.
    for group in old.groups:
        rescale.admin.delete_group(group)
    rescale.admin.delete_topics(old.topics)

    def change(state: ControlState) -> dict[str, Generations]:
        known = state.generations
        if known is None:
            return {}
        retired = tuple(dict.fromkeys((*known.retired, old.application_id)))
        left = {name: topics for name, topics in known.left.items() if name != old.application_id}
        return {"generations": known.model_copy(update={"retired": retired, "left": left})}

    rescale.control.update(change)
