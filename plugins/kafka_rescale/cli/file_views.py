"""What the commands show about an application file and its topology, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafka_rescale.cli.output import Document, Rows
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.pipeline.builder import Pipeline
from kafka_rescale.core.plan.not_copied import NOT_COPIED
from kafka_rescale.core.topology.topology import SubTopology, Topology, internal_topic


def application_view(application: Application, topology: Topology) -> Document:
    """Show a valid application file."""
    listed, table = _sub_topologies(topology)
    data = {
        "application": application.application_id,
        "mode": str(application.mode),
        "partitions": application.partitions,
        "subtopologies": listed,
    }
    wanted = f"{application.partitions} partitions wanted, mode {application.mode}"
    text = f"{application.application_id}: the file is valid; {wanted}."
    return Document(data, text, (table,))


def pipeline_view(application: PipelineApplication, pipeline: Pipeline) -> Document:
    """Show a valid application file of a pipeline."""
    listed, table = _sub_topologies(pipeline.topology)
    clients = [(c.client_id, application.threads_of(c), c.state_dir) for c in application.members]
    header = ("client", "threads", "state.dir")
    data = {
        **_data(application),
        "subtopologies": listed,
        "clients": [dict(zip(header, row, strict=True)) for row in clients],
    }
    text = f"{application.application_id}: the file is valid; runtime spark, pipeline {application.pipeline}."
    return Document(data, text, (table, Rows("Clients", header, clients)))


def topology_view(application: PipelineApplication, pipeline: Pipeline) -> Document:
    """Show the topics of a pipeline, and its topology as Kafka Streams would print it."""
    header = ("topic", "role", "read by", "written by")
    rows = list(_topics(application.application_id, pipeline))
    data = {
        **_data(application),
        "subtopologies": _sub_topologies(pipeline.topology)[0],
        "topics": [dict(zip(header, row, strict=True)) for row in rows],
        "topology": pipeline.describe(),
    }
    text = f"{application.application_id}: runtime spark, pipeline {application.pipeline}."
    return Document(data, text, (Rows("Topics", header, rows),), closing=pipeline.describe().rstrip())


def _data(application: PipelineApplication) -> dict[str, Any]:
    return {
        "application": application.application_id,
        "runtime": application.runtime,
        "pipeline": application.pipeline,
    }


def _topics(application_id: str, pipeline: Pipeline) -> Iterator[tuple[str, str, str, str]]:
    """Yield the full name of each topic, its role, and the sub-topologies that read it and that write it."""
    topology = pipeline.topology
    kinds = {
        "input": [(topic, topic) for topic in topology.inputs],
        "repartition": [(topic, internal_topic(application_id, topic)) for topic in sorted(topology.repartitions)],
        "output": [(topic, topic) for topic in topology.outputs],
    }
    for kind, names in kinds.items():
        for own, full in names:
            read = (str(s.id) for s in topology.subtopologies if own in s.sources)
            written = (str(s.id) for s in topology.subtopologies if own in s.sinks)
            yield full, kind, ", ".join(read), ", ".join(written)
    for part in pipeline.sub_topologies():
        for store in part.stores:
            if store.changelog_topic is not None:
                name = f"{application_id}-{store.changelog_topic}"
                window = f", keys end with {store.window_bytes} bytes of windows" if store.window_bytes else ""
                yield name, f"changelog, {store.kind}{window}", str(part.id), str(part.id)


def _sub_topologies(topology: Topology) -> tuple[list[dict[str, object]], Rows]:
    """Return the sub-topologies as data for programs and as a table for people."""
    found = topology.subtopologies
    listed: list[dict[str, object]] = [
        {"id": s.id, "sources": s.sources, "stores": s.stores, "sinks": s.sinks, "not_copied": s.unlogged}
        for s in found
    ]
    rows = [(s.id, ", ".join(s.sources), ", ".join(_stores(s)), ", ".join(s.sinks)) for s in found]
    return listed, Rows("Sub-topologies", ("id", "sources", "stores", "sinks"), rows)


def _stores(subtopology: SubTopology) -> list[str]:
    return [*subtopology.stores, *(f"{store} ({NOT_COPIED})" for store in subtopology.unlogged)]
