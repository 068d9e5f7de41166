"""What a stage changes about topics: outputs grow, green's topics are made. Also the progress of its copies."""

from __future__ import annotations

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.progress import NO_POSITION, PartitionProgress
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.plan.plan import Plan, Stage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.expansion.compaction import without_held
from kafka_rescale.operations.expansion.rescale import Rescale


def expand_stage(
    application: Application, connection: KafkaConnection, *, owner: str, stage: int, airflow: str = ""
) -> list[str]:
    """Grow a stage's outputs and create green's topics, including its new inputs, with blue's own configs.

    In place this grows only the outputs: the application's own topics grow when it has been stopped. This is
    idempotent: it only changes what differs, and it changes nothing once green owns the inputs.

    :param owner: the run that holds the lease.
    :param stage: counting from 1 at the most downstream.
    :param airflow: the Airflow that the owner is a run of; empty if that is not known.
    :returns: one line for each change.
    :raises Fenced: another run has taken over.
    :raises UnsafeState: a green topic exists with another count, or the attempt was rolled back.
    """
    rescale = Rescale.open(application, connection, owner, airflow)
    journal = rescale.journal()
    journal.assert_not_rolled_back()
    if journal.is_promoted:
        return []
    return _expand(rescale.admin, journal, journal.plan.stage(stage))


def _expand(admin: ClusterAdmin, journal: Journal, stage: Stage) -> list[str]:
    moves = (*stage.moves, *stage.bridges)
    found = admin.describe_topics([t for m in moves for t in (m.source, m.target)])
    for move in moves:
        if move.source not in found:
            raise Refused(
                f"topic {move.source!r}",
                found="no such topic",
                expected="the running generation's topic, as planned",
                remedy="Plan again: the application's topology may have changed since.",
            )
    growing = {g.topic: g.target for g in stage.grow_outputs}
    grown = admin.grow_topics(growing)
    changes = [f"grew {topic} from {earlier} to {growing[topic]}" for topic, earlier in grown.items()]
    for move in (m for m in moves if not m.is_in_place):
        described = found[move.source]
        configs = without_held(journal, move.target, described.overrides, found.get(move.target))
        if admin.ensure_topic(move.target, move.target_partitions, described.replication_factor, configs):
            changes.append(f"created {move.target} with {move.target_partitions} partitions")
    return changes


def lags(connection: KafkaConnection, plan: Plan, index: int | None) -> list[PartitionProgress]:
    """Return position and end of every changelog partition being copied.

    :param index: one stage, or all for ``None``.
    :returns: ``position`` is ``NO_POSITION`` if a copy has not begun; ``end`` is exclusive.
    """
    admin = ClusterAdmin(connection)
    moves = plan.changelogs if index is None else plan.stage(index).changelogs
    sources = [move.source for move in moves]
    begins, ends = admin.begin_offsets(sources), admin.end_offsets(sources)
    committed = admin.committed(plan.copy_group)
    return [
        PartitionProgress(
            topic=move.source,
            partition=partition,
            position=committed.get(move.source, {}).get(partition, NO_POSITION),
            end=ends[move.source][partition],
            begin=begins[move.source][partition],
        )
        for move in moves
        for partition in range(move.source_partitions)
    ]
