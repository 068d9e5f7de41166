"""Do the inputs and outputs of an application file agree with its topology?"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.application.lifecycles import STARTS, ShellLifecycle
from kafka_rescale.core.application.mistakes import Mistake, unknown
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.topics import Input, InputPolicy
from kafka_rescale.core.topology.topology import SubTopology, Topology, is_internal


def inputs_declared(application: Application, topology: Topology) -> Iterator[Mistake]:
    """Yield declared inputs that the topology does not read, and inputs of the topology that are not declared."""
    declared = [i.topic for i in application.inputs]
    for index, topic in enumerate(declared):
        if topic in topology.global_topics and topic not in topology.inputs:
            yield Mistake(
                ("inputs", index, "topic"),
                f"{topic}, which only a global store reads",
                "topics that tasks read",
                "Delete it: every instance reads all partitions of it, whatever the parallelism.",
            )
        elif topic not in topology.inputs:
            yield unknown(("inputs", index, "topic"), "input topic", topic, topology.inputs)
    for topic in topology.inputs:
        if topic not in declared:
            yield Mistake(
                ("inputs",),
                f"no declaration of input topic {topic}, which the topology reads",
                "every external topic that the topology reads",
                f"Add `- {{topic: {topic}, policy: unkeyed | paused | repartitioned | fixed}}`.",
            )


def outputs_declared(application: Application, topology: Topology) -> Iterator[Mistake]:
    """Yield outputs that the topology does not write, and outputs that must not grow first."""
    chooses = any(s.dynamic_sinks for s in topology.subtopologies)
    for index, output in enumerate(application.outputs):
        if output.topic not in topology.outputs and not chooses:
            yield unknown(("outputs", index, "topic"), "output topic", output.topic, topology.outputs)
        if output.partitions is not None and output.topic in {*topology.inputs, *topology.global_topics}:
            yield _read_by_itself(index, output.topic, is_global=output.topic in topology.global_topics)


def unread_repartitions(application: Application, topology: Topology) -> Iterator[Mistake]:
    """Yield repartition topics that no sub-topology reads.

    The missing sub-topology may have state, which would be left behind.
    """
    known = {*(o.topic for o in application.outputs), *topology.inputs}
    for topic in (t for t in topology.outputs if is_internal(t) and t not in known):
        yield Mistake(
            ("subtopologies",) if application.topology is None else ("topology",),
            f"{topic}, which is written and which no sub-topology reads",
            "the sub-topology that reads it: the topology has been cut, or is not whole",
            "Paste the whole text that Topology#describe() prints; if it is no repartition topic but an output "
            f"with such a name, add `- {{topic: {topic}}}` to `outputs:`.",
        )


def _read_by_itself(index: int, topic: str, *, is_global: bool) -> Mistake:
    """Return the mistake of an output that the application reads: outputs grow first, while it runs."""
    return Mistake(
        ("outputs", index, "partitions"),
        f"the output {topic}, which a global store of the application reads"
        if is_global
        else f"the output {topic}, which the application itself reads",
        "a count for outputs that only others read: they grow while the application runs",
        "Delete `partitions:` here: the running application would not read the new partitions."
        if is_global
        else "Delete `partitions:` here. It can only grow as an input, by `policy: paused` for it and "
        "for all that leads to it; else declare `policy: fixed` in `inputs:`.",
    )


def policies(application: Application, topology: Topology) -> Iterator[Mistake]:
    """Yield policies that contradict the topology's use of the input."""
    for index, declared in enumerate(application.inputs):
        if declared.producers and declared.policy is not InputPolicy.PAUSED:
            yield Mistake(
                ("inputs", index, "producers"),
                f"commands for the producers of an input with policy {declared.policy}",
                "`producers:` with policy paused only",
                "Delete them, or declare `policy: paused`.",
            )
        if declared.producers and declared.producers.application == application.application_id:
            yield Mistake(
                ("inputs", index, "producers", "application"),
                f"{application.application_id}, the application itself",
                "another application",
                f"Delete `producers:` if no other program writes {declared.topic}: the application is stopped in "
                "any case. Otherwise name the application that writes it, or give `stop:` and `start:`.",
            )
        keyed_by_it = [s for s in topology.subtopologies if declared.topic in s.sources and s.is_stateful]
        if declared.policy is InputPolicy.UNKEYED and keyed_by_it:
            yield Mistake(
                ("inputs", index, "policy"),
                f"unkeyed, while sub-topology {keyed_by_it[0].id} reads {declared.topic} and keeps "
                f"{', '.join(keyed_by_it[0].all_stores)}",
                "paused, repartitioned or fixed for an input whose keys decide where state is",
                "Declare `policy: paused` (with `producers:` to hold them), `repartitioned` if they can't be "
                "held, or `fixed` if its count shall stay.",
            )


def successors(application: Application) -> Iterator[Mistake]:
    """Yield successors that the program could not read, or whose names belong to other topics."""
    spec = application.lifecycle
    commands = spec.commands if isinstance(spec, ShellLifecycle) else {}
    for index, declared in enumerate(application.inputs):
        if declared.policy is not InputPolicy.REPARTITIONED:
            if declared.successor is not None:
                yield Mistake(
                    ("inputs", index, "successor"),
                    f"a successor for an input with policy {declared.policy}",
                    "`successor:` with policy repartitioned only",
                    "Delete it, or declare `policy: repartitioned`.",
                )
            continue
        told = f"{{input:{declared.topic}}}"
        for name in (n for n in STARTS if n in commands and told not in commands[n]):
            yield Mistake(
                ("lifecycle", name),
                f"a {name} command without {told}",
                f"the topic that is to be read as {declared.topic}, which changes with every expansion",
                f"Let the program take the topic's name from its command line: … {told}.",
            )
        taken = {i.topic for i in application.inputs} | {o.topic for o in application.outputs}
        taken |= {i.successor_topic(application.partitions) for i in application.inputs[:index]}
        if (name := declared.successor_topic(application.partitions)) in taken:
            yield Mistake(
                ("inputs", index, "successor"),
                f"the successor {name}, which is a topic of its own",
                "a name for the new topic alone",
                "Choose another name; {topic} and {partitions} are filled in.",
            )


def isolation(application: Application) -> Iterator[Mistake]:
    """Yield inputs that come through a bridge but aren't declared as ``read_committed``.

    Brokers can't tell a consumer's isolation level: it is only a part of its fetches.
    """
    for index, declared in enumerate(application.inputs):
        if declared.policy is InputPolicy.REPARTITIONED and declared.isolation_level != "read_committed":
            yield Mistake(
                ("inputs", index, "isolation_level"),
                f"{declared.isolation_level} for {declared.topic}, which comes through a bridge",
                "read_committed: what a killed bridge has taken back would be processed, and then once more",
                "Run the program with processing.guarantee=exactly_once_v2 or main.consumer.isolation.level="
                "read_committed, then declare `isolation_level: read_committed` here.",
            )


def copartitioned_policies(application: Application, topology: Topology) -> Iterator[Mistake]:
    """Yield pairs of inputs of one stateful sub-topology of which one would grow and the other would not."""
    by_topic = {i.topic: i for i in application.inputs}
    for subtopology in topology.subtopologies:
        group = [by_topic[t] for t in subtopology.sources if t in by_topic]
        fixed = [i for i in group if i.policy is InputPolicy.FIXED]
        if subtopology.is_stateful and fixed and len(fixed) < len(group):
            yield _one_grows(application, subtopology, fixed[0], next(i for i in group if i not in fixed))


def _one_grows(application: Application, subtopology: SubTopology, fixed: Input, growing: Input) -> Mistake:
    return Mistake(
        ("inputs", application.inputs.index(fixed), "policy"),
        f"fixed for {fixed.topic} and {growing.policy} for {growing.topic}, which sub-topology {subtopology.id} "
        "reads: their counts would differ",
        "either fixed for both or for none",
        f"Declare `policy: paused` for {fixed.topic}, or `fixed` for {growing.topic} too.",
    )
