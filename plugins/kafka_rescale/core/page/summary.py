"""The summary of an application in one line, for the list of applications and the head of its own page."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_rescale.core.application.generation_names import blue_names
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.cluster import ClusterDescription
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.page.health import Health, health_of, unreachable
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.core.values import Value


class Run(Value):
    """A DAG run. ``run_id`` is empty for the DAG itself."""

    dag_id: str
    run_id: str = ""


class Summary(Value):
    """One line of the list of applications.

    :param application: the base name.
    :param running: the ``application.id`` of the running generation.
    :param partitions: the partition count of the running generation.
    :param wanted: the partition count that the application file asks for.
    :param target: the partition count to which the expansion in progress leads.
    :param lag: how many offsets of the inputs the running generation has not committed yet.
    :param run: the run that the journal names as its owner. If it names none, the DAG of the expansion.
    """

    application: str
    mode: str
    health: Health
    running: str
    generation: int
    partitions: int | None
    wanted: int | None
    phase: str | None
    target: int | None
    lag: int | None
    run: Run


def summary(
    application: Application, topology: Topology, control: ControlState, found: ClusterDescription, now_ms: int
) -> Summary:
    """Return the summary of an application.

    :param found: the topics and the group of the running generation.
    :param now_ms: the time at which all this was read, in ms since the epoch.
    """
    journal, generations = control.journal, control.generations
    changing = journal is not None and journal.in_progress
    running = generations.running if generations else application.application_id
    tasks = [
        n for name, n in topic_counts(application, topology, control, found).items() if name in topology.stores
    ]
    inputs = {generations.inputs.get(t, t) if generations else t for t in topology.inputs}
    lags = [
        max(0, end - found.committed.get(at, found.begins.get(at, 0)))
        for at, end in found.ends.items()
        if at[0] in inputs
    ]
    return Summary(
        application=application.application_id,
        mode=application.mode.value,
        health=health_of(control, found.group, now_ms=now_ms, max_pause_seconds=application.max_pause_seconds),
        running=running,
        generation=generations.generation if generations else 1,
        partitions=generations.partitions if generations else max(tasks, default=None),
        wanted=application.partitions,
        phase=journal.phase.value if journal else None,
        target=journal.plan.partitions if journal is not None and changing else None,
        lag=sum(lags) if found.committed else None,
        run=_run(application, control),
    )


def unknown(application_id: str, reason: str) -> Summary:
    """Return the summary of an application whose file can't be used, or whose cluster doesn't answer.

    :param reason: the error in words.
    """
    return Summary(
        application=application_id,
        mode="",
        health=unreachable(reason),
        running="",
        generation=0,
        partitions=None,
        wanted=None,
        phase=None,
        target=None,
        lag=None,
        run=Run(dag_id=dag_of(application_id)),
    )


def dag_of(application_id: str) -> str:
    """Return the id of the DAG whose permissions decide which users see an application."""
    return f"expand_{application_id}"


def topic_counts(
    application: Application, topology: Topology, control: ControlState, found: ClusterDescription
) -> Mapping[str, int]:
    """Return the present partition count of every topic of the topology, and of every store's changelog."""
    generations = control.generations
    names = blue_names(application, generations.running if generations else application.application_id)
    renamed = generations.inputs if generations else {}
    full = {t: renamed.get(t, t) for t in (*topology.inputs, *topology.outputs)}
    full |= {t: names.repartition(t) for t in topology.repartitions}
    full |= {store: names.changelog(store) for store in topology.stores}
    return {name: found.topics[topic].partitions for name, topic in full.items() if topic in found.topics}


def _run(application: Application, control: ControlState) -> Run:
    owner = control.journal.owner if control.journal is not None else ""
    dag_id, _, run_id = owner.partition("/")
    if not run_id or dag_id == "shell":
        return Run(dag_id=dag_of(application.application_id))
    return Run(dag_id=dag_id, run_id=run_id)
