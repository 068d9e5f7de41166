"""Can an input grow that the application writes itself, by a sink and a source of one topic?

A sink may choose its topic per record. Then the file tells that it writes the input: `outputs:` has it, too.
The running generation fills such an input until it has stopped, and the next one as soon as it is started.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.application.mistakes import Mistake
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.topics import Input, InputPolicy
from kafka_rescale.core.topology.topology import Topology


def own_inputs(application: Application, topology: Topology) -> Iterator[Mistake]:
    """Yield inputs that the application writes itself, with a policy for inputs with other producers."""
    written = [i for i in application.inputs if i.topic in topology.outputs]
    for declared in written:
        place = ("inputs", application.inputs.index(declared), "policy")
        found = f"{declared.policy} for {declared.topic}, which the application itself writes"
        remedy = (
            "Declare `policy: fixed`, or let the program go through repartition() instead of a topic of its own"
        )
        if declared.policy is InputPolicy.REPARTITIONED:
            yield Mistake(
                place,
                found,
                "an input that others write: the new generation would write beside the bridge, so that the "
                "records of a key would change their order",
                f"{remedy}.",
            )
        elif declared.policy is InputPolicy.PAUSED and (filling := _not_held(application, topology, declared)):
            yield Mistake(
                place,
                found,
                f"an input that can be held: it is filled as long as {', '.join(filling)} comes in",
                f"{remedy}; or declare `policy: paused` for {', '.join(filling)}, too.",
            )


def _not_held(application: Application, topology: Topology, declared: Input) -> list[str]:
    """Return the inputs upstream of an input, however far, that are not held for the pause."""
    upstream = topology.upstream_of(declared.topic)
    return [i.topic for i in application.inputs if i.topic in upstream and i.policy is not InputPolicy.PAUSED]
