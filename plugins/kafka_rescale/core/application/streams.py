"""The application file: declarative desired state, one YAML per application."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from kafka_rescale.core.application.autoscaling import Bounds
from kafka_rescale.core.application.common import ApplicationFile
from kafka_rescale.core.application.fields import (
    ChainName,
    Name,
    PartitionCount,
    WholeNumber,
    checked_patterns,
)
from kafka_rescale.core.application.lifecycles import Lifecycle
from kafka_rescale.core.application.mistakes import WrongValue
from kafka_rescale.core.application.notifications import Event, Notification
from kafka_rescale.core.application.pacing import FREE_DISK_PERCENT, Pacing
from kafka_rescale.core.application.snapshots import Snapshots
from kafka_rescale.core.application.stores import Store
from kafka_rescale.core.application.topics import Input, InputPolicy, Output, Repartition, SubTopologySpec
from kafka_rescale.core.application.windows import CutoverWindows
from kafka_rescale.core.topology.topology import Topology


class Mode(StrEnum):
    """How an application gets its new partitions.

    ``blue_green``: a next generation is built beside the running one. ``in_place``: the application's own topics
    grow while it is stopped, and only the keys that move are copied.
    """

    BLUE_GREEN = "blue_green"
    IN_PLACE = "in_place"


class Application(ApplicationFile):
    """One application file.

    :param application_id: the ``application.id`` of the first generation; later ones add a suffix. Up to 240
        characters, so that Airflow's ids have room for it.
    :param kafka_conn_ids: Airflow connections of roles (``plan``, ``copy``, ``admin``, ``verify``) that have a
        principal of their own; the others use ``kafka_conn_id``.
    :param kafka_config_files: JSON files with the Kafka settings of ``copy`` and ``verify``, mounted for drivers
        of Spark jobs if the connection can't be passed to them without showing it. They replace the file that the
        environment names.
    :param partitions: desired parallelism; inputs that grow and internal topics get this count.
    :param topology: text printed by ``Topology#describe()`` (the loader resolves a file name to its text).
    :param source_patterns: the topics that a source's pattern matches today, by the pattern as `describe()` prints
        it. The expansion is about these topics. Preflight and the cutover refuse if further topics match by then.
    :param acceptable_recovery_lag: offsets per partition within which the gate opens (KIP-441's default).
    :param max_pause_seconds: limit of the pause up to the promotion. After it, the running generation is started
        again. The pause begins when this generation is stopped, or before, when producers of `paused` inputs are
        held.
    :param cutover_windows: when the running generation may be stopped for a cutover. A person who approves the
        cutover may name another time. Without this field, it is stopped once everything is ready and approved.
    :param max_wait_seconds: limit of the wait for the approval of the cutover and for its window. Until then the
        copies are kept near. After it, the run ends, and its copies stay as they are.
    :param pacing: how much of the cluster the copy and the proof may use beside the running application. A person
        may set another limit meanwhile. Without this field there is no limit.
    :param chain: name of a chain of applications that are expanded by one trigger, downstream first.
    :param internal_topic_prefix: the value of ``__internal.override.topic.prefix__``, which takes the place of the
        ``application.id`` in the names of internal topics; generations add their suffix to it.
    :param green_names: the next generation's name of a store or repartition (without suffix), by its present name:
        generated indexes shift when the program has changed. If a store and a repartition have the same name,
        ``<name>-changelog`` and ``<name>-repartition`` say which is meant, on both sides.
    :param unrelated: ids of other applications whose internal topics' names begin like this application's, and
        topics that an older version of its program has left. Preflight refuses other topics that the topology does
        not explain.
    :param max_restore_seconds: how long green may restore its stores behind the warm-up gate.
    :param free_disk_percent: the part of what a broker can still write that the copies must leave free. Preflight
        refuses an expansion that would leave less, and the copy rests as long as there is less. With `null`,
        preflight only tells the figures, and the copy never rests for it.
    :param copy_cores: cores of a standalone Spark cluster that ``catch_up`` keeps until the switch, perhaps for
        days. Without this field it takes ``spark.cores.max`` of ``spark_conf``, or else 1.
    :param bridge_cores: cores of a standalone Spark cluster that the bridge of a repartitioned input keeps for
        weeks.
    :param autoscaling_enabled: whether ``watch_<application>`` expands it when an input has grown (KIP-878).
    :param autoscaling_timeout_ms: how long it retries without any success, from the first failure on (KIP-878).
    :param schedule: cron expression or preset of its expansion DAG, but not ``@continuous``. Without a schedule,
        only a person or another program starts an expansion, and the DAG can't be backfilled. Its runs ask no
        person. A run that begins more than an hour after its time, as when the DAG is unpaused, is skipped.
    :param snapshots: daily snapshots of its stores; without this field there is no snapshot DAG.
    :param notifications: notifiers of Airflow, and the events that each of them is told.
    :param pause_alert_seconds: limit of the time from the begin of the pause to the first output of the next
        generation. After it, notifiers of ``long_pause`` are told, even if the cutover hangs. Without this field
        no notifier is told.
    """

    runtime: Literal["kafka-streams"] = "kafka-streams"
    mode: Mode = Mode.BLUE_GREEN
    partitions: PartitionCount
    inputs: tuple[Input, ...] = Field(min_length=1)
    outputs: tuple[Output, ...] = ()
    topology: str | None = None
    source_patterns: dict[str, tuple[Name, ...]] = Field(default_factory=dict)
    subtopologies: tuple[SubTopologySpec, ...] = ()
    stores: tuple[Store, ...] = ()
    repartitions: tuple[Repartition, ...] = ()
    internal_topic_prefix: Name | None = None
    green_names: dict[Name, Name] = Field(default_factory=dict)
    unrelated: tuple[Name, ...] = ()
    lifecycle: Lifecycle
    acceptable_recovery_lag: WholeNumber = Field(default=10_000, ge=0)
    max_pause_seconds: WholeNumber = Field(default=300, ge=10)
    max_restore_seconds: WholeNumber = Field(default=3600, ge=10)
    cutover_windows: CutoverWindows | None = None
    max_wait_seconds: WholeNumber = Field(default=7 * 24 * 3600, ge=60)
    free_disk_percent: WholeNumber | None = Field(default=FREE_DISK_PERCENT, ge=0, le=99)
    pacing: Pacing | None = None
    copy_cores: WholeNumber | None = Field(default=None, ge=1)
    bridge_cores: WholeNumber = Field(default=1, ge=1)
    chain: ChainName | None = None
    autoscaling_bounds: Bounds = Bounds()
    snapshots: Snapshots | None = None
    notifications: tuple[Notification, ...] = ()
    pause_alert_seconds: WholeNumber | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _one_topology(self) -> Application:
        if (self.topology is None) == (not self.subtopologies):
            found = "no topology" if self.topology is None else "both `topology:` and `subtopologies:`"
            raise WrongValue(
                found=found,
                expected="either `topology:`, a file with what Topology#describe() prints, or `subtopologies:`",
                remedy="Print it in the program, and save it beside this file.",
            )
        return self

    _source_patterns = field_validator("source_patterns")(checked_patterns)

    @field_validator("pause_alert_seconds")
    @classmethod
    def _somebody_is_told(cls, value: int | None, info: ValidationInfo) -> int | None:
        told: tuple[Notification, ...] | None = info.data.get("notifications")
        if value is not None and told is not None and not _told_of(told, Event.LONG_PAUSE):
            raise WrongValue(
                found="no notifier of event long_pause",
                expected="one for `pause_alert_seconds:`",
                remedy="Add it to `notifications:`, or delete the field.",
            )
        return value

    @field_validator("max_wait_seconds")
    @classmethod
    def _a_window_comes_in_time(cls, value: int, info: ValidationInfo) -> int:
        windows: CutoverWindows | None = info.data.get("cutover_windows")
        if windows is not None and value < windows.longest_gap_seconds:
            raise WrongValue(
                found=f"{value} s, while {windows.longest_gap_seconds} s may pass between two `cutover_windows`",
                expected="at least that",
                remedy="Raise it, or name more windows: a run would end before its window begins.",
            )
        return value

    def notifications_of(self, event: Event) -> tuple[Notification, ...]:
        """Return the notifications of an event."""
        return _told_of(self.notifications, event)

    def input_named(self, topic: str) -> Input:
        """Return the declaration of an input topic."""
        return next(i for i in self.inputs if i.topic == topic)

    @property
    def logged_stores(self) -> tuple[Store, ...]:
        """The stores that a topic can restore; the others are only on the disks of instances."""
        return tuple(s for s in self.stores if s.is_logged)

    def store_named(self, name: str) -> Store:
        """Return the declaration of a store."""
        return next(s for s in self.stores if s.name == name)

    def repartition_partitioner(self, topic: str) -> str:
        """Return the partitioner of a repartition topic, named with its suffix."""
        declared = {r.topic: r.partitioner for r in self.repartitions}
        return declared.get(topic, "murmur2")

    def internal_prefix(self, application_id: str) -> str:
        """Return the prefix of the names of a generation's internal topics.

        :param application_id: ``application.id`` of the generation.
        """
        if self.internal_topic_prefix is None:
            return application_id
        return self.internal_topic_prefix + application_id.removeprefix(self.application_id)

    def enforced_counts(self, partitions: int, present: Mapping[str, int]) -> dict[str, int]:
        """Return the counts that the program sets itself when started with ``{partitions}``.

        Keys carry the ``-repartition`` suffix, as the topology names them.

        :param present: present counts of repartition topics, with the suffix. Topics of a fixed count keep theirs.
        """
        told = dict.fromkeys(self.repartitions_of_start_command, partitions)
        fixed = (r.topic for r in self.repartitions if r.count == "fixed")
        return told | {topic: present[topic] for topic in fixed if topic in present}

    @property
    def repartitions_of_start_command(self) -> tuple[str, ...]:
        """Repartition topics whose counts the program takes from ``{partitions}``; with their suffix."""
        return tuple(r.topic for r in self.repartitions if r.count == "start_command")

    @property
    def explained_repartitions(self) -> frozenset[str]:
        """Repartition topics of which the file says who sets their counts; with their suffix."""
        return frozenset(r.topic for r in self.repartitions if "count" in r.model_fields_set)

    @property
    def following_repartitions(self) -> frozenset[str]:
        """Repartition topics whose counts the program does not set, as the file says; with their suffix."""
        said = (r for r in self.repartitions if "count" in r.model_fields_set)
        return frozenset(r.topic for r in said if r.count in ("derived", "joined"))


def _told_of(notifications: tuple[Notification, ...], event: Event) -> tuple[Notification, ...]:
    return tuple(n for n in notifications if event in n.events)


def keyed_inputs(application: Application, topology: Topology) -> list[Input]:
    """Return the inputs whose keys decide where state is."""
    stateful = {t for s in topology.subtopologies if s.is_stateful for t in s.sources}
    return [
        i
        for i in application.inputs
        if i.policy in {InputPolicy.PAUSED, InputPolicy.REPARTITIONED}
        or (i.policy is InputPolicy.FIXED and i.topic in stateful)
    ]
