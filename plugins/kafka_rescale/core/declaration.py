"""Does the application file agree with its own topology? Needs no cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from kafka_rescale.core.application import Application, Input, InputPolicy, ShellLifecycle
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.topology import REPARTITION_SUFFIX, SubTopology, Topology

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class Mistake:
    """A finding at a place of the application file.

    :param location: path of keys and indexes to the offending value, for its line.
    """

    location: Location
    found: str
    expected: str
    remedy: str

    def finding(self, where: str) -> Finding:
        """Return the finding with the place spelled out."""
        return Finding(where, self.found, self.expected, self.remedy)


def check_declaration(application: Application, topology: Topology) -> list[Mistake]:
    """Return every contradiction within an application file; none means that it is sound in itself."""
    return [
        *_duplicates(application),
        *_stores(application, topology),
        *_inputs(application, topology),
        *_outputs(application, topology),
        *_repartitions(application, topology),
        *_green_names(application, topology),
        *_internal_topic_prefix(application),
        *_source_tables(application, topology),
        *_policies(application, topology),
        *_copartitioned_policies(application, topology),
        *_successors(application),
    ]


def _duplicates(application: Application) -> Iterator[Mistake]:
    lists: dict[str, list[str]] = {
        "inputs": [i.topic for i in application.inputs],
        "outputs": [o.topic for o in application.outputs],
        "stores": [s.name for s in application.stores],
        "repartitions": [r.name for r in application.repartitions],
    }
    for kind, names in lists.items():
        for name in (n for n, count in Counter(names).items() if count > 1):
            second = names.index(name, names.index(name) + 1)
            yield Mistake((kind, second), f"{name} a second time", "each name once", "Delete one of the two.")


def _stores(application: Application, topology: Topology) -> Iterator[Mistake]:
    declared = [s.name for s in application.stores]
    all_stores = [*topology.stores, *(table for s in topology.subtopologies for table in s.source_tables)]
    for index, name in enumerate(declared):
        if name in topology.global_stores:
            yield Mistake(
                ("stores", index, "name"),
                f"the global store {name}",
                "stores with a changelog",
                "Delete it: every instance reads a global store from its source topic, nothing has to be moved.",
            )
        elif name not in all_stores:
            yield _unknown(("stores", index, "name"), "store", name, all_stores)
    for store in topology.stores:
        if store not in declared:
            yield Mistake(
                ("stores",),
                f"no declaration of store {store}, which the topology has",
                "every store of the topology",
                f"Add `- {{name: {store}, type: …}}`; an aggregate without a window is timestamped-key-value.",
            )


def _inputs(application: Application, topology: Topology) -> Iterator[Mistake]:
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
            yield _unknown(("inputs", index, "topic"), "input topic", topic, topology.inputs)
    for topic in topology.inputs:
        if topic not in declared:
            yield Mistake(
                ("inputs",),
                f"no declaration of input topic {topic}, which the topology reads",
                "every external topic that the topology reads",
                f"Add `- {{topic: {topic}, policy: unkeyed | paused | repartitioned | fixed}}`.",
            )


def _outputs(application: Application, topology: Topology) -> Iterator[Mistake]:
    chooses = any(s.dynamic_sinks for s in topology.subtopologies)
    for index, output in enumerate(application.outputs):
        if output.topic not in topology.outputs and not chooses:
            yield _unknown(("outputs", index, "topic"), "output topic", output.topic, topology.outputs)
        if output.partitions is not None and output.topic in {*topology.inputs, *topology.global_topics}:
            yield _read_by_itself(index, output.topic, is_global=output.topic in topology.global_topics)


def _read_by_itself(index: int, topic: str, *, is_global: bool) -> Mistake:
    """Outputs grow first of all, under the running application."""
    return Mistake(
        ("outputs", index, "partitions"),
        f"the output {topic}, which a global store of the application reads"
        if is_global
        else f"the output {topic}, which the application itself reads",
        "a count for outputs that only others read: they grow while the application runs",
        "Delete `partitions:` here: the running application would not read the new partitions."
        if is_global
        else "Delete `partitions:` here, and let it grow as an input: `policy: paused`.",
    )


def _repartitions(application: Application, topology: Topology) -> Iterator[Mistake]:
    internal = (t for t in topology.repartitions if t.endswith(REPARTITION_SUFFIX))
    known = sorted(t.removesuffix(REPARTITION_SUFFIX) for t in internal)
    for index, repartition in enumerate(application.repartitions):
        if repartition.name not in known:
            yield _unknown(("repartitions", index, "name"), "repartition", repartition.name, known)


def _green_names(application: Application, topology: Topology) -> Iterator[Mistake]:
    known = sorted({*topology.stores, *(t.removesuffix(REPARTITION_SUFFIX) for t in topology.repartitions)})
    names = [application.green_names.get(name, name) for name in known]
    for now, then in application.green_names.items():
        if now not in known:
            yield _unknown(("green_names", now), "store or repartition", now, known)
        elif names.count(then) > 1:
            yield Mistake(
                ("green_names", now),
                f"{then} for more than one store or repartition",
                "a name of its own for each in the next generation",
                "Compare what Topology#describe() prints for the program before and after.",
            )


def _internal_topic_prefix(application: Application) -> Iterator[Mistake]:
    lifecycle, placeholder = application.lifecycle, "{internal_topic_prefix}"
    if application.internal_topic_prefix is None or not isinstance(lifecycle, ShellLifecycle):
        return
    if placeholder not in lifecycle.start:
        yield Mistake(
            ("lifecycle", "start"),
            f"no {placeholder} in the start command",
            "the prefix of each generation's own internal topics",
            f"Let the program set __internal.override.topic.prefix__ from {placeholder}; else both generations "
            "would write the same topics.",
        )


def _source_tables(application: Application, topology: Topology) -> Iterator[Mistake]:
    for index, store in enumerate(application.stores):
        if store.changelog != "source":
            continue
        sources = next((s.sources for s in topology.subtopologies if store.name in s.source_tables), ())
        growing = [i for i in application.inputs if i.topic in sources and i.policy is not InputPolicy.FIXED]
        for declared in growing[:1]:
            yield Mistake(
                ("stores", index, "changelog"),
                f"{declared.policy} for {declared.topic}, which is the changelog of {store.name}",
                "fixed: after a growth a key's old entry stays in the old partition and its updates go to another",
                "Declare `policy: fixed`, or run the program without `topology.optimization` "
                "(reuse.ktable.source.topics) first, so that the store has a changelog of its own.",
            )


def _unknown(location: Location, kind: str, name: str, known: Iterable[str]) -> Mistake:
    known = tuple(known)
    near = get_close_matches(name, known, n=1)
    return Mistake(
        location,
        f"the {kind} {name}, which the topology does not have",
        f"one of {', '.join(known)}" if known else f"no {kind}: the topology has none",
        f"Did you mean {near[0]}?" if near else "Correct the name, or paste the topology of the present program.",
    )


def _policies(application: Application, topology: Topology) -> Iterator[Mistake]:
    for index, declared in enumerate(application.inputs):
        if declared.producers and declared.policy is not InputPolicy.PAUSED:
            yield Mistake(
                ("inputs", index, "producers"),
                f"commands for the producers of an input with policy {declared.policy}",
                "`producers:` with policy paused only",
                "Delete them, or declare `policy: paused`.",
            )
        keyed_by_it = [s for s in topology.subtopologies if declared.topic in s.sources and s.is_stateful]
        if declared.policy is InputPolicy.UNKEYED and keyed_by_it:
            yield Mistake(
                ("inputs", index, "policy"),
                f"unkeyed, while sub-topology {keyed_by_it[0].id} reads {declared.topic} and keeps "
                f"{', '.join(keyed_by_it[0].stores + keyed_by_it[0].source_tables)}",
                "paused, repartitioned or fixed for an input whose keys decide where state is",
                "Declare `policy: paused` (with `producers:` to hold them), `repartitioned` if nobody can, or "
                "`fixed` if its count shall stay.",
            )


def _successors(application: Application) -> Iterator[Mistake]:
    spec = application.lifecycle
    commands = {"start": spec.start, "start_gated": spec.start_gated} if isinstance(spec, ShellLifecycle) else {}
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
        for name in (n for n, command in commands.items() if command is not None and told not in command):
            yield Mistake(
                ("lifecycle", "shell", name),
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


def _copartitioned_policies(application: Application, topology: Topology) -> Iterator[Mistake]:
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
        "joins: their counts would differ",
        "either fixed for both or for none",
        f"Declare `policy: paused` for {fixed.topic}, or `fixed` for {growing.topic} too.",
    )
