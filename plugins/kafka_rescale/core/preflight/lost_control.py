"""Preflight: does the control topic know the generations that have left topics or that run?

Without its records, the first generation is taken for the running one. The remedies of all other checks would then
be about the wrong one: start what must never run again, stop what is at work, and delete its only state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kafka_rescale.core.application.generation_names import blue_names, green_names
from kafka_rescale.core.control.keys import CONTROL_TOPIC
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.plan.planning import green_application_id
from kafka_rescale.core.preflight.situation import Situation, counted


def unknown_generations(situation: Situation) -> Iterator[Finding]:
    """Yield a finding if there is something of a later generation, and no record of any expansion."""
    control, name = situation.control, situation.application.application_id
    if control.generations is not None or control.journal is not None:
        return
    group = situation.green_group
    is_live = group.is_live and not situation.is_in_place
    found = [f"{counted(len(group.members), 'member')} in group {group.group_id}"] if is_live else []
    if topics := list(_topics_of_later_generations(situation)):
        found.append(", ".join(topics))
    if found:
        yield Finding(
            f"application {name!r}",
            f"{'; '.join(found)}, while topic {CONTROL_TOPIC!r} knows of no expansion",
            f"records there about every generation that was begun of {name}",
            "They may be lost, and this may be the generation that runs, with its only state. Stop and delete "
            f"nothing before that is clear, and start nothing. Airflow's runs of expand_{name} tell which "
            "generation was promoted last; the group of one that has run has members or committed offsets. "
            "Then restore the records. Only if nothing was ever promoted, this is left over, and may go.",
        )


def _topics_of_later_generations(situation: Situation) -> Iterator[str]:
    """Yield the topics whose names a later generation gives to its internal topics.

    Another application may be named as a later generation would be. Then these topics are its own.
    """
    application, topology = situation.application, situation.topology
    prefix = re.escape(application.internal_prefix(application.application_id))
    later = re.compile(rf"{prefix}-g([1-9]\d*)-")
    others = {other.internal_prefix(other.application_id) for other, _ in situation.beside}
    for topic in sorted({*situation.visible, *situation.green_records}):
        if (found := later.match(topic)) is None:
            continue
        generation = green_application_id(application.application_id, int(found[1]))
        if application.internal_prefix(generation) in others:
            continue
        if any(topic in names(application, generation).all_of(topology) for names in (blue_names, green_names)):
            yield topic
