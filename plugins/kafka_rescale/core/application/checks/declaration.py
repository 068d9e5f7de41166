"""Does the application file agree with its own topology? This needs no cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from kafka_rescale.core.application.checks.in_place import in_place
from kafka_rescale.core.application.checks.lifecycle import lifecycle_commands, producer_commands
from kafka_rescale.core.application.checks.own_inputs import own_inputs
from kafka_rescale.core.application.checks.own_topics import own_topics
from kafka_rescale.core.application.checks.patterns import source_patterns
from kafka_rescale.core.application.checks.snapshots import snapshots_declared
from kafka_rescale.core.application.checks.topics import (
    copartitioned_policies,
    inputs_declared,
    isolation,
    outputs_declared,
    policies,
    successors,
    unread_repartitions,
)
from kafka_rescale.core.application.generation_names import GenerationNames
from kafka_rescale.core.application.mistakes import Mistake, unknown
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.topology.topology import CHANGELOG_SUFFIX, REPARTITION_SUFFIX, Topology


def check_declaration(application: Application, topology: Topology) -> list[Mistake]:
    """Return every contradiction within an application file; without any, the file is sound in itself."""
    return [
        *_circles(topology),
        *_duplicates(application),
        *_stores(application, topology),
        *source_patterns(application, topology),
        *inputs_declared(application, topology),
        *outputs_declared(application, topology),
        *unread_repartitions(application, topology),
        *_repartitions(application, topology),
        *_green_names(application, topology),
        *_unrelated(application),
        *lifecycle_commands(application),
        *producer_commands(application),
        *_source_tables(application, topology),
        *policies(application, topology),
        *own_inputs(application, topology),
        *own_topics(application, topology),
        *copartitioned_policies(application, topology),
        *successors(application),
        *isolation(application),
        *in_place(application),
        *snapshots_declared(application),
    ]


def _circles(topology: Topology) -> Iterator[Mistake]:
    try:
        topology.downstream_first()
    except InvalidInput as error:
        yield Mistake.of(("topology",), error.complaint)


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
    all_stores = [*topology.stores, *topology.without_changelog]
    for index, name in enumerate(declared):
        if name in topology.global_stores:
            yield Mistake(
                ("stores", index, "name"),
                f"the global store {name}",
                "stores that tasks keep",
                "Delete it: every instance reads a global store from its source topic, nothing has to be moved.",
            )
        elif name not in all_stores:
            yield unknown(("stores", index, "name"), "store", name, all_stores)
    for store in topology.stores:
        if store not in declared:
            yield Mistake(
                ("stores",),
                f"no declaration of store {store}, which the topology has",
                "every store of the topology",
                f"Add `- {{name: {store}, type: …}}`; the DSL's tables and aggregates are timestamped-key-value, "
                "windowed ones timestamped-window, those of session windows session, those of suppress one of "
                f"suppress, suppress-window and suppress-session. If the program does not log it, add `- {{name: "
                f"{store}, changelog: none}}`.",
            )


def _repartitions(application: Application, topology: Topology) -> Iterator[Mistake]:
    internal = (t for t in topology.repartitions if t.endswith(REPARTITION_SUFFIX))
    known = sorted(t.removesuffix(REPARTITION_SUFFIX) for t in internal)
    for index, repartition in enumerate(application.repartitions):
        if repartition.name not in known:
            yield unknown(("repartitions", index, "name"), "repartition", repartition.name, known)


def _green_names(application: Application, topology: Topology) -> Iterator[Mistake]:
    repartitions = {t.removesuffix(REPARTITION_SUFFIX) for t in topology.repartitions}
    topics = _internal(topology, {})
    afterwards = _internal(topology, application.green_names)
    known = sorted({*topology.stores, *repartitions, *topics})
    for now, then in application.green_names.items():
        meant = {now} & set(topics) or {f"{now}{CHANGELOG_SUFFIX}", f"{now}{REPARTITION_SUFFIX}"}
        if now in topology.without_changelog:
            yield Mistake(
                ("green_names", now),
                f"{now}, a store without a changelog of its own",
                "stores and repartitions whose topics are copied",
                "Delete it: no topic has its name, so it may have another one in the next generation.",
            )
        elif now not in known:
            yield unknown(("green_names", now), "store or repartition", now, known)
        elif now in topology.stores and now in repartitions:
            yield Mistake(
                ("green_names", now),
                f"{now}, which is a store and a repartition",
                "which of the two is meant",
                f"Say what each is called then, with the suffix of its topic: `{now}{CHANGELOG_SUFFIX}: "
                f"…{CHANGELOG_SUFFIX}` and `{now}{REPARTITION_SUFFIX}: …{REPARTITION_SUFFIX}`.",
            )
        elif now in topics and _suffix(then) != _suffix(now):
            yield Mistake(
                ("green_names", now),
                then,
                f"a name that ends in {_suffix(now)}, as the present one does",
                f"Write `{now}: {then}{_suffix(now)}`.",
            )
        elif any(afterwards.count(name) > 1 for t, name in zip(topics, afterwards, strict=True) if t in meant):
            yield Mistake(
                ("green_names", now),
                f"{then} for more than one store or repartition",
                "a name of its own for each in the next generation",
                "Compare what Topology#describe() prints for the program before and after.",
            )


def _internal(topology: Topology, renamed: Mapping[str, str]) -> list[str]:
    """Return the names of internal topics without the prefix of a generation."""
    return [name.removeprefix("-") for name in GenerationNames("", renamed).all_of(topology)]


def _suffix(name: str) -> str:
    return next((s for s in (CHANGELOG_SUFFIX, REPARTITION_SUFFIX) if name.endswith(s)), "")


def _unrelated(application: Application) -> Iterator[Mistake]:
    prefix = f"{application.internal_prefix(application.application_id)}-"
    for index, name in enumerate(application.unrelated):
        if not name.startswith(prefix):
            yield Mistake(
                ("unrelated", index),
                name,
                f"application ids or topics that begin with {prefix}, as only those can be taken for topics of "
                f"{application.application_id}",
                "Delete it, or correct it.",
            )


def _source_tables(application: Application, topology: Topology) -> Iterator[Mistake]:
    for index, store in enumerate(application.stores):
        if store.changelog != "source":
            continue
        sources = next((s.sources for s in topology.subtopologies if store.name in s.source_tables), ())
        if sources and not set(sources) & set(topology.inputs):
            yield Mistake(
                ("stores", index, "changelog"),
                f"source for {store.name}, whose sub-topology reads only {', '.join(sources)}",
                "source for a table of an input: a repartition topic is no changelog, so nothing would be copied",
                "If the program does not log the store, write `changelog: none`.",
            )
        growing = [i for i in application.inputs if i.topic in sources and i.policy is not InputPolicy.FIXED]
        for declared in growing[:1]:
            yield Mistake(
                ("stores", index, "changelog"),
                f"{declared.policy} for {declared.topic}, which is the changelog of {store.name}",
                "fixed: after a growth a key's old entry stays in the old partition and its updates go to another",
                "Declare `policy: fixed`, or run the program without `topology.optimization` "
                "(reuse.ktable.source.topics) first, so that the store has a changelog of its own.",
            )
