"""What the commands show of an application file and of its topology, without a cluster."""

from __future__ import annotations

from typing import Any

from kafka_rescale.cli.output import Document, Rows
from kafka_rescale.core.application import Application
from kafka_rescale.core.pipeline.builder import Pipeline
from kafka_rescale.core.pipeline_application import PipelineApplication
from kafka_rescale.core.topology import Topology


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
    clients = [(c.client_id, application.threads_of(c), c.state_dir) for c in application.members]
    header = ("client", "threads", "state.dir")
    tables = (_sub_topologies(pipeline.topology)[1], Rows("Clients", header, clients))
    data = {**_data(application, pipeline), "clients": [dict(zip(header, row, strict=True)) for row in clients]}
    text = f"{application.application_id}: the file is valid; runtime spark, pipeline {application.pipeline}."
    return Document(data, text, tables, closing=pipeline.describe().rstrip())


def topology_view(application: PipelineApplication, pipeline: Pipeline) -> Document:
    """Show the topology of a pipeline, as Kafka Streams would print it."""
    return Document(_data(application, pipeline), pipeline.describe().rstrip())


def _data(application: PipelineApplication, pipeline: Pipeline) -> dict[str, Any]:
    return {
        "application": application.application_id,
        "runtime": application.runtime,
        "pipeline": application.pipeline,
        "inputs": pipeline.topology.inputs,
        "outputs": pipeline.topology.outputs,
        "subtopologies": _sub_topologies(pipeline.topology)[0],
        "topology": pipeline.describe(),
    }


def _sub_topologies(topology: Topology) -> tuple[list[dict[str, object]], Rows]:
    """Return the sub-topologies for programs and for people."""
    found = topology.subtopologies
    listed: list[dict[str, object]] = [
        {"id": s.id, "sources": s.sources, "stores": s.stores, "sinks": s.sinks} for s in found
    ]
    rows = [(s.id, ", ".join(s.sources), ", ".join(s.stores), ", ".join(s.sinks)) for s in found]
    return listed, Rows("Sub-topologies", ("id", "sources", "stores", "sinks"), rows)
