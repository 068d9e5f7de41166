"""Preflight: do the topics exist, can their copies have the same configs, and are green's names free?"""

from __future__ import annotations

from collections.abc import Container, Iterator

from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.formats.changelog_formats import ChangelogFormat, Content
from kafka_rescale.core.formats.key_layouts import WHOLE
from kafka_rescale.core.plan.not_copied import told_not_copied
from kafka_rescale.core.preflight.described import Described
from kafka_rescale.core.preflight.situation import Situation, counted


def missing_topics(described: Described, visible: Container[str]) -> Iterator[Finding]:
    """Yield every topic of the application that the cluster does not have.

    :param visible: names of the cluster's topics, to recognise a topic of the user's own.
    """
    topology, topics = described.topology, described.cluster.topics
    for topic in map(described.full_name, topology.inputs):
        if topic not in topics:
            yield _missing(
                topic, "the input topic", "Create it, or correct its name in the topology and `inputs:`."
            )
    for output in described.application.outputs:
        if output.topic not in topics:
            yield _missing(output.topic, "the output topic", "Create it, or delete it from `outputs:`.")
    internal = [described.full_name(t) for t in sorted(topology.repartitions)]
    changelogs = {described.changelog(s): s for s in topology.stores}
    if (internal or changelogs) and not any(t in topics for t in (*internal, *changelogs)):
        yield Finding(
            f"application {described.blue!r}",
            "none of its internal topics on the cluster",
            f"topics such as {next(iter([*internal, *changelogs]))}",
            "Correct `application_id` or the Kafka connection; if it has never run, it has no state to move.",
        )
        return
    for name, topic in zip(sorted(topology.repartitions), internal, strict=True):
        if topic not in topics:
            yield _missing(
                topic,
                "the repartition topic",
                (_own_topic(name) if name in visible else "") or _paste_again(described),
            )
    for topic, store in changelogs.items():
        if topic not in topics:
            yield _missing_changelog(described, topic, store)


def _own_topic(name: str) -> str:
    return (
        f"There is a topic {name}: if it is your own, which the program writes and reads, declare it in `inputs:`."
    )


def _paste_again(described: Described) -> str:
    remedy = "Paste the topology that the running program prints."
    if described.application.green_names and described.blue != described.application.application_id:
        return f"{remedy} `green_names:` were meant for the generation that runs now: delete them."
    return remedy


_DENIED = {
    "source": (
        "no such topic: its source topic would serve as one",
        "Delete `changelog: source`; if the program was optimised since, delete the topic instead.",
    ),
    "none": (
        "no such topic: a store without logging has none, and nothing of it would be copied",
        "Declare the store's `type:` instead of `changelog: none`, so that it is copied. If the topic is left "
        "from a time when the program logged the store, delete the topic instead.",
    ),
}
"""What is expected of a store with this ``changelog:``, and the remedy if there is a changelog of its own."""


def denied_changelogs(situation: Situation) -> Iterator[Finding]:
    """Yield changelogs of stores that are declared to have no changelog of their own."""
    for store in situation.application.stores:
        topic = situation.changelog(store.name)
        if store.changelog in _DENIED and topic in situation.cluster.topics:
            expected, remedy = _DENIED[store.changelog]
            yield Finding(
                f"topic {topic!r}",
                f"a changelog of store {store.name}, declared with `changelog: {store.changelog}`",
                expected,
                remedy,
            )


def unlogged_messages(situation: Situation) -> Iterator[str]:
    """Yield the stores that the next generation starts with empty, because they have no changelog."""
    for subtopology in situation.topology.subtopologies:
        if not subtopology.unlogged:
            continue
        kept = (*subtopology.stores, *subtopology.source_tables)
        beside = (
            f" Sub-topology {subtopology.id} also keeps {', '.join(kept)}, with its whole content. Until "
            f"{', '.join(subtopology.unlogged)} has filled again, results of both differ from those without an "
            "expansion: for example, a duplicate is processed again that was known before."
        )
        yield f"{told_not_copied(subtopology.unlogged)}.{beside if kept else ''}"


def _missing(topic: str, kind: str, remedy: str) -> Finding:
    return Finding(f"topic {topic!r}", "no such topic", kind, remedy)


def _missing_changelog(described: Described, topic: str, store: str) -> Finding:
    # A repartition topic never serves as a changelog.
    sources = [s for s in described.topology.subtopology_of(store).sources if s in described.topology.inputs]
    optimised = (
        f"If `topology.optimization` makes an input ({', '.join(sources)}) serve as its changelog, declare "
        "`changelog: source`: with `policy: fixed` it needs no other. "
    )
    return Finding(
        f"topic {topic!r}",
        "no such topic",
        f"the changelog of store {store}",
        f"{optimised if sources else ''}If the program does not log the store, its "
        "content is only on local disks and can't be copied. To keep the content, run the program with logging "
        f"first. To let {described.green} start with it empty, write `- {{name: {store}, changelog: none}}`.",
    )


def store_types(situation: Situation) -> Iterator[Finding]:
    """Yield changelogs whose cleanup policy contradicts the declared store type."""
    for store in situation.application.logged_stores:
        topic = situation.cluster.topics.get(situation.changelog(store.name))
        if topic is None:
            continue
        allowed = store.format.cleanup_policies
        if topic.cleanup_policy not in allowed:
            yield Finding(
                f"topic {topic.name!r}",
                f"cleanup.policy {','.join(topic.cleanup_policy)}",
                f"{' or '.join(','.join(p) for p in allowed)} for the {store.type} store {store.name}",
                _type_remedy(topic.cleanup_policy, store.format),
            )


def _type_remedy(policy: tuple[str, ...], declared: ChangelogFormat) -> str:
    if policy == ("compact", "delete"):
        # Entries of a plain store expire only by the topic's config. They are copied like all other entries.
        is_plain = declared.layout == WHOLE and declared.has(Content.LATEST)
        return "Kafka Streams sets compact,delete for windows and sessions: declare the store's real type." + (
            " If the program itself sets it, so that entries expire, declare `type: processor` with "
            "`partitioning_key: whole`."
            if is_plain
            else ""
        )
    if policy == ("delete",):
        return (
            "Kafka Streams sets delete alone for the windows of stream-stream joins: declare `type: join-window`. "
            "The changelog of any other store loses live entries: set cleanup.policy=compact and check the store."
        )
    return "Declare the store's real type."


def replicas(situation: Situation) -> Iterator[Finding]:
    """Yield internal topics whose copies could not be created or written."""
    internal = [situation.changelog(s) for s in situation.topology.stores]
    internal += [situation.full_name(t) for t in sorted(situation.topology.repartitions)]
    for name in internal:
        if name in situation.cluster.topics:
            yield from _replicas(situation.cluster.topics[name], situation.cluster.brokers)


def _replicas(topic: TopicDescription, brokers: int) -> Iterator[Finding]:
    in_sync = int(topic.configs.get("min.insync.replicas", "1"))
    if topic.replication_factor > brokers:
        yield Finding(
            f"topic {topic.name!r}",
            f"replication factor {topic.replication_factor} with {brokers} live brokers",
            "as many brokers as its copy needs replicas",
            "Start the missing brokers.",
        )
    elif in_sync > topic.replication_factor:
        yield Finding(
            f"topic {topic.name!r}",
            f"min.insync.replicas {in_sync} with replication factor {topic.replication_factor}",
            "at most the replication factor: nothing could be written to its copy",
            "Lower min.insync.replicas, or raise the replication factor.",
        )


def green_names(situation: Situation) -> Iterator[Finding]:
    """Yield topics and members under the names that green needs, unless an earlier run of this expansion left
    them.

    In place no new name is needed.
    """
    if situation.is_in_place:
        return
    planned = {m.target: m.target_partitions for m in situation.plan.moves}
    for name, records in sorted(situation.green_records.items()):
        if name in situation.successors().values():
            continue
        if situation.own_journal is None:
            yield Finding(
                f"topic {name!r}",
                f"{counted(records, 'record')} in a topic that no expansion of this application has made",
                "a name that is free for the next generation",
                f"If it is not needed, delete it (`kafka-topics.sh --delete --topic {name}`).",
            )
            continue
        found = situation.cluster.topics.get(name)
        if found is not None and found.partitions != planned.get(name, found.partitions):
            yield Finding(
                f"topic {name!r}",
                f"{found.partitions} partitions, left by an attempt with another target",
                f"{planned[name]} partitions or no such topic",
                f"Delete it (`kafka-topics.sh --delete --topic {name}`) and the local state of {situation.green}, "
                "if it was pre-warmed; blue does not use them.",
            )
    group = situation.green_group
    if group.is_live:
        yield Finding(
            f"group {group.group_id!r}",
            counted(len(group.members), "member"),
            "no member before the next generation is started",
            "Stop whatever runs with that application.id.",
        )


def retention_warnings(situation: Situation) -> Iterator[str]:
    """Yield window changelogs with entries that retention may delete as soon as they are copied."""
    for store in situation.topology.stores:
        topic = situation.cluster.topics.get(situation.changelog(store))
        if topic is None or "delete" not in topic.cleanup_policy:
            continue
        if topic.configs.get("retention.bytes", "-1") != "-1":
            yield f"{topic.name}: retention.bytes is set, so that the brokers may delete live entries of its copy."
        retention_ms = int(topic.configs.get("retention.ms", "-1"))
        stale = [s for s in situation.samples if s.topic == topic.name and s.timestamp_ms >= 0]
        old = sum(s.timestamp_ms < situation.now_ms - retention_ms for s in stale)
        if retention_ms >= 0 and old:
            yield (
                f"{topic.name}: {old} of {len(stale)} sampled entries are older than its retention.ms "
                f"({retention_ms}); the brokers may delete them in the copy before they do so here."
            )
