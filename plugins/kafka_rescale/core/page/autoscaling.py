"""KIP-878's metrics and the last report of the watch, for the page."""

from __future__ import annotations

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.autoscaling.parallelism import observe
from kafka_rescale.core.cluster import ClusterDescription
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.preflight.described import Described
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.core.values import Value

WATCH = "watch"


class SubtopologyParallelism(Value):
    """``current-`` and ``expected-subtopology-parallelism`` (KIP-878)."""

    subtopology: int
    current: int
    expected: int


class AutoscalingState(Value):
    """The report of the watch.

    :param failures: ``num-autoscaling-failures`` (KIP-878).
    :param outcome: the outcome of the last look that changed anything. Empty before the first such look.
    :param said: the reason of this outcome.
    """

    enabled: bool
    failures: int
    outcome: str
    said: str
    parallelism: tuple[SubtopologyParallelism, ...]


def autoscaling_state(
    application: Application, topology: Topology, control: ControlState, found: ClusterDescription
) -> AutoscalingState:
    """Return the state of an application's autoscaling.

    :param found: the topics and the group of the running generation.
    """
    observed = observe(Described(application, topology, application.partitions, control, found))
    look = control.results.get(WATCH)
    return AutoscalingState(
        enabled=application.autoscaling_enabled,
        failures=control.autoscaling.failures if control.autoscaling else 0,
        outcome=look.state if look else "",
        said=look.detail if look else "",
        parallelism=tuple(
            SubtopologyParallelism(subtopology=p.subtopology, current=p.current, expected=p.expected)
            for p in observed.parallelism
        ),
    )
