"""Before a run of a pipeline: may each role do its part?"""

from __future__ import annotations

from kafka_rescale.core.pipeline_acls import PipelinePatterns, pipeline_acls
from kafka_rescale.core.pipeline_application import PipelineApplication
from kafka_rescale.core.pipelines import pipeline_named
from kafka_rescale.operations.permissions import Connections, refuse_missing


def require_permissions(application: PipelineApplication, connections: Connections) -> None:
    """Refuse to begin where a role lacks a permission, as far as the brokers tell.

    :param application: as its file has it, also for a backfill.
    :param connections: of the roles to check.
    :raises PreflightRefused: with a finding, and the command that mends it, per missing permission.
    """
    topology = pipeline_named(application.pipeline).topology
    acls = [acl for acl in pipeline_acls(application, topology) if acl.role in connections]
    refuse_missing(acls, connections, PipelinePatterns(application, topology).topics)
