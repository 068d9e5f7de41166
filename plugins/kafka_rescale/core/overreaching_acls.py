"""Prefixes that reach further than they are meant to: other topics of the application whose names begin so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kafka_rescale.core.acls import Acl, Operation, Pattern, Resource, Role
from kafka_rescale.core.application import Application
from kafka_rescale.core.control_records import CONTROL_TOPIC
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.needed_acls import Patterns, needed_acls
from kafka_rescale.core.pipeline_acls import PipelinePatterns, pipeline_acls
from kafka_rescale.core.pipeline_application import PipelineApplication
from kafka_rescale.core.topology import Topology

_SUCCESSORS = (
    "Let the successors begin as nothing else does, by `successor:`, such as '{topic}.successor-{partitions}'; "
    "without {partitions} in it no prefix is needed."
)
_INTERNAL = "Rename that topic, or let the internal topics begin otherwise: `internal_topic_prefix`."
_OF_A_PIPELINE = "Rename that topic, or choose another `application_id`: internal topics begin with it."


def overreach_of_application(application: Application, topology: Topology) -> list[Finding]:
    """Return the topics of an application that prefixes of its ACLs reach and aren't meant to."""
    of = Patterns(application, topology)
    prefixed = (pattern for pattern in of.successors() if pattern.prefixed)
    remedies = {**dict.fromkeys(prefixed, _SUCCESSORS), of.internal: _INTERNAL}
    literal = [pattern.name for pattern in of.successors() if not pattern.prefixed]
    topics = {
        **dict.fromkeys(topology.global_topics, "the source of a global store"),
        **dict.fromkeys((pattern.name for _, pattern in of.outputs()), "an output"),
        **dict.fromkeys((pattern.name for _, pattern in of.inputs()), "an input"),
        **dict.fromkeys(literal, "the successor of another input"),
        CONTROL_TOPIC: "the control topic",
    }
    return list(_overreaching(needed_acls(application, topology), remedies, topics))


def overreach_of_pipeline(application: PipelineApplication, topology: Topology) -> list[Finding]:
    """Return the topics of a pipeline that the prefix of its internal topics reaches."""
    of = PipelinePatterns(application, topology)
    topics = {
        **dict.fromkeys(of.outputs, "an output"),
        **dict.fromkeys(topology.inputs, "an input"),
        CONTROL_TOPIC: "the control topic",
    }
    return list(_overreaching(pipeline_acls(application, topology), {of.internal: _OF_A_PIPELINE}, topics))


def _overreaching(
    acls: Iterable[Acl], remedies: Mapping[Pattern, str], topics: Mapping[str, str]
) -> Iterator[Finding]:
    given = list(acls)
    for pattern, remedy in remedies.items():
        for topic, kind in topics.items():
            if pattern.covers(Resource.TOPIC, topic):
                yield Finding(
                    f"ACLs on {pattern}",
                    f"{topic} among these, which is {kind} ({_given_by(pattern, given)})",
                    "no other topic of the application there",
                    remedy,
                )


def _given_by(pattern: Pattern, acls: list[Acl]) -> str:
    operations: dict[Role, list[Operation]] = {}
    for acl in acls:
        if acl.pattern == pattern:
            operations.setdefault(acl.role, []).append(acl.operation)
    return "; ".join(f"{role} may {', '.join(allowed)}" for role, allowed in operations.items())
