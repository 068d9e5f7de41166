"""What the commands can say about an application file of either runtime without a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from kafka_rescale.cli.acls_view import Apart, acls_view
from kafka_rescale.cli.file_views import application_view, pipeline_view, topology_view
from kafka_rescale.cli.output import Document
from kafka_rescale.core.acls.acls import Acl
from kafka_rescale.core.acls.needed import disk_space_acls, needed_acls, retirement_acls
from kafka_rescale.core.acls.pipeline import pipeline_acls
from kafka_rescale.core.application.common import ApplicationFile
from kafka_rescale.core.application.runtimes import SPARK
from kafka_rescale.core.assignment.rack_standbys import rack_standby_task_assignor
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.processing.exception_handler import exception_handler
from kafka_rescale.core.processing.late_records import late_hints
from kafka_rescale.core.processing.linear_topics import require_linear_topics
from kafka_rescale.core.processing.static_topic import require_static_topics
from kafka_rescale.core.roles import Role
from kafka_rescale.operations.application.load import (
    load_application,
    load_pipeline_application,
    runtime_of,
    topology_of,
)
from kafka_rescale.operations.preflight.overreach import overreach


def validated(file: Path) -> Document:
    """Return what a valid file describes. This imports the pipeline that the file names.

    :raises InvalidInput: The file, or the pipeline or handler that it names, can't be used.
    """
    if runtime_of(file) == SPARK:
        declared = load_pipeline_application(file)
        pipeline = pipeline_named(declared.pipeline)
        require_static_topics(
            declared.static_partitioners, declared.linear_hashing, pipeline.topology, pipeline.sub_topologies()
        )
        exception_handler(declared.uncaught_exception_handler)
        if declared.rack_standby_task_assignor is not None:
            rack_standby_task_assignor(declared.rack_standby_task_assignor)
        require_linear_topics(declared.linear_hashing, pipeline.topology, declared.moved_outputs)
        return _warning(
            pipeline_view(declared, pipeline), late_hints(pipeline.topology, pipeline.sub_topologies())
        )
    application = load_application(file)
    return application_view(application, topology_of(application))


def permissions(file: Path, principals: Mapping[Role, str], servers: str) -> Document:
    """Return the permissions that the roles of a file need, and the commands that grant them.

    :raises InvalidInput: the file, or the pipeline that it names, can't be used.
    """
    application, acls, apart = _needed(file)
    view = acls_view(acls, principals, servers, apart)
    return _warning(view, overreach(file, application.application_id, acls))


def described_pipeline(file: Path) -> Document:
    """Return the topics and the topology of a pipeline.

    :raises InvalidInput: the file, or the pipeline that it names, can't be used.
    """
    application = load_pipeline_application(file)
    return topology_view(application, pipeline_named(application.pipeline))


def _needed(file: Path) -> tuple[ApplicationFile, tuple[Acl, ...], tuple[Apart, ...]]:
    """Return the application, the permissions of its roles, and the permissions that no expansion needs."""
    if runtime_of(file) == SPARK:
        pipeline = load_pipeline_application(file)
        return pipeline, pipeline_acls(pipeline, pipeline_named(pipeline.pipeline).topology), ()
    application = load_application(file)
    topology = topology_of(application)
    disk = "Only for preflight and the copy to watch the free space of the brokers, which is unknown without it"
    retire = f"Only for retire_{application.application_id}, while generations from before the growth exist"
    apart = (
        Apart("disk_space", disk, disk_space_acls(application)),
        Apart("retire", retire, retirement_acls(application, topology)),
    )
    return application, needed_acls(application, topology), tuple(each for each in apart if each.acls)


def _warning(document: Document, findings: Iterable[object]) -> Document:
    """Return the document with the warnings at its end, where a reader sees them."""
    warnings = list(map(str, findings))
    closing = "\n".join([document.closing, *(f"warning: {each}" for each in warnings)])
    return replace(document, data={**document.data, "warnings": warnings}, closing=closing)
