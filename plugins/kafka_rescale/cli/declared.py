"""What can be said of an application file of either runtime without a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from kafka_rescale.cli.acls_view import acls_view
from kafka_rescale.cli.file_views import application_view, pipeline_view, topology_view
from kafka_rescale.cli.output import Document
from kafka_rescale.core.acls import Role
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.needed_acls import needed_acls
from kafka_rescale.core.overreaching_acls import overreach_of_application, overreach_of_pipeline
from kafka_rescale.core.pipeline_acls import pipeline_acls
from kafka_rescale.core.pipelines import pipeline_named
from kafka_rescale.core.runtimes import SPARK
from kafka_rescale.operations.load import load_application, load_pipeline_application, runtime_of, topology_of


def validated(file: Path) -> Document:
    """Return what a valid file describes; a pipeline is imported for that.

    :raises InvalidInput: the file, or the pipeline that it names, can't be used.
    """
    if runtime_of(file) == SPARK:
        declared = load_pipeline_application(file)
        pipeline = pipeline_named(declared.pipeline)
        return _warning(pipeline_view(declared, pipeline), overreach_of_pipeline(declared, pipeline.topology))
    application = load_application(file)
    topology = topology_of(application)
    return _warning(application_view(application, topology), overreach_of_application(application, topology))


def permissions(file: Path, principals: Mapping[Role, str], servers: str) -> Document:
    """Return the permissions that the roles of a file need, and the commands that give them.

    :raises InvalidInput: the file, or the pipeline that it names, can't be used.
    """
    if runtime_of(file) == SPARK:
        declared = load_pipeline_application(file)
        topology = pipeline_named(declared.pipeline).topology
        acls, findings = pipeline_acls(declared, topology), overreach_of_pipeline(declared, topology)
    else:
        application = load_application(file)
        topology = topology_of(application)
        acls, findings = needed_acls(application, topology), overreach_of_application(application, topology)
    return _warning(acls_view(acls, principals, servers), findings)


def described_pipeline(file: Path) -> Document:
    """Return the topology of a pipeline.

    :raises InvalidInput: the file, or the pipeline that it names, can't be used.
    """
    application = load_pipeline_application(file)
    return topology_view(application, pipeline_named(application.pipeline))


def _warning(document: Document, findings: Iterable[Finding]) -> Document:
    """Put warnings behind everything else, where they are seen."""
    warnings = list(map(str, findings))
    closing = "\n".join(filter(None, [document.closing, *(f"warning: {each}" for each in warnings)]))
    return replace(document, data={**document.data, "warnings": warnings}, closing=closing)
