"""Does the application read an internal topic of its own, such as a changelog, by its full name?

Such a topic belongs to one generation, but every later generation would read it too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kafka_rescale.core.application.generation_names import GenerationNames
from kafka_rescale.core.application.mistakes import Mistake
from kafka_rescale.core.application.streams import Application, Mode
from kafka_rescale.core.topology.topology import Topology


def own_topics(application: Application, topology: Topology) -> Iterator[Mistake]:
    """Yield inputs and global topics that are internal topics of a generation of the application.

    A source topic that serves as a changelog (``changelog: source``) is no internal topic.
    """
    declared = [i.topic for i in application.inputs]
    name_of_any_generation = _of_any_generation(application, topology)
    for topic in dict.fromkeys((*topology.inputs, *topology.global_topics)):
        if name_of_any_generation.fullmatch(topic):
            place = ("inputs", declared.index(topic), "topic") if topic in declared else ("topology",)
            yield Mistake(
                place,
                f"{topic}, which the application reads, and which is an internal topic of its own",
                f"topics that no generation owns: {_harm(application.mode)}",
                "Let the program write the records with to() into a topic that you create, and read that topic; "
                "or read the store.",
            )


def _harm(mode: Mode) -> str:
    if mode is Mode.IN_PLACE:
        return "an expansion copies keys to other partitions of this one, and leaves their old records behind"
    return "the next generation writes another topic, so no record would come to this one any more"


def _of_any_generation(application: Application, topology: Topology) -> re.Pattern[str]:
    """Return the pattern of the full names that the internal topics have in a generation of any number."""
    prefix = re.escape(application.internal_prefix(application.application_id))
    names = (re.escape(name.removeprefix("-")) for name in GenerationNames("").all_of(topology))
    return re.compile(rf"{prefix}(-g\d+)?-({'|'.join(names)})")
