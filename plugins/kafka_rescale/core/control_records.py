"""What the control topic keeps per application, one key per concern."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from kafka_rescale.core.acceptance import Acceptances
from kafka_rescale.core.autoscaling_record import Autoscaling
from kafka_rescale.core.bridge import Bridge
from kafka_rescale.core.journal import Journal, PartitionOffsets
from kafka_rescale.core.lag_history import LagHistory
from kafka_rescale.core.processing.processors_record import PipelineProcessors
from kafka_rescale.core.processing.record import Processing
from kafka_rescale.core.values import Value

CONTROL_TOPIC = "_kafka_rescale"


class Concern(StrEnum):
    """The second half of a control record's key, ``<application>/<concern>[/<detail>]``."""

    LEASE = "lease"
    JOURNAL = "journal"
    GENERATIONS = "generations"
    BRIDGE = "bridge"
    AUTOSCALING = "autoscaling"
    PROCESSING = "processing"
    PROCESSORS = "processors"
    RESULT = "result"
    REPORT = "report"
    ACCEPTANCES = "acceptances"


class Lease(Value):
    """Who may change this application now.

    :param owner: ``<dag_id>/<run_id>`` of an Airflow run, or ``shell/<host>/<pid>``.
    :param epoch: raised by every acquisition.
    :param expires_at_ms: a lease of an owner that can't be asked is free after this; every change of the journal
        renews it.
    :param airflow: which Airflow the owner is a run of; empty if that is not known, or it is none.
    """

    owner: str
    epoch: int
    target: int
    expires_at_ms: int
    released: bool = False
    airflow: str = ""

    @property
    def holder(self) -> str:
        """Who holds it now; empty if it was given back."""
        return "" if self.released else self.owner


class PastGeneration(Value):
    """A generation that has run.

    :param running: its ``application.id``.
    :param since_ms: as in ``Generations``.
    :param until_ms: wall clock when it was asked to stop for good.
    :param committed: where it stopped reading its inputs.
    :param ends: exclusive ends of its changelogs, where these have gone on as the next generation's.
    """

    running: str
    generation: int
    since_ms: int
    until_ms: int
    committed: PartitionOffsets = Field(default_factory=dict)
    ends: PartitionOffsets = Field(default_factory=dict)


class Generations(Value):
    """The incarnations of an application: ``running`` is the ``application.id`` that owns the inputs.

    :param inputs: what the running one reads instead of an input that was repartitioned, by the name in the file.
    :param grown_from: counts that internal topics of the running one had before they were grown in place.
    :param grown_inputs: counts that inputs had before expansions grew them; processed records still lie by them.
    :param retired: earlier ones whose topics have been deleted.
    :param left: the internal topics of earlier ones that have not been retired.
    :param since_ms: wall clock when the one before was asked to stop; 0 if unknown, and for the first.
    :param past: those before, the oldest first, as far as they are known.
    :param begins: log starts of changelogs that did not begin at 0, because a copy into them was begun anew.
    """

    running: str
    generation: int = 1
    partitions: int = 0
    retired: tuple[str, ...] = ()
    previous: str = ""
    inputs: dict[str, str] = Field(default_factory=dict)
    grown_from: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    grown_inputs: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    left: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    since_ms: int = 0
    past: tuple[PastGeneration, ...] = ()
    begins: PartitionOffsets = Field(default_factory=dict)


class PartitionProgress(Value):
    """How far the copy of one source partition is. ``records`` and ``bytes`` count this attempt only."""

    topic: str
    partition: int
    position: int
    end: int
    records: int = 0
    bytes: int = 0


class JobResult(Value):
    """What a Spark job leaves for the next task, and a lag gate for whoever watches it.

    :param job: ``restore/<stage>``, ``warm_up/<stage>``, ``catch_up``, ``process/<level>/<thread>``,
        ``warm_up_processors/<client>``, ``keep_warm/<client>``; of gates ``lag_gate/<stage>``, ``gate_all``;
        ``watch`` for a look of the watch.
    :param state: ``running``, ``ready`` (catch_up near the ends), ``done``, ``failed``; of gates their answer, and
        of a look its outcome.
    :param seeded: of ``records``, those that were rows of a snapshot; the others were read from the log.
    :param as_of_ms: everything that was in the source then has been copied (for tombstone safety).
    :param lags: how the lags have changed over this attempt.
    :param marks: of a pipeline's tasks, what was committed beside their offsets, as JSON.
    """

    job: str
    run: str
    attempt: int
    state: str
    records: int = 0
    seeded: int = 0
    bytes: int = 0
    seconds: float = 0.0
    as_of_ms: int = 0
    partitions: tuple[PartitionProgress, ...] = Field(default_factory=tuple)
    detail: str = ""
    lags: LagHistory = Field(default_factory=LagHistory)
    marks: dict[str, str] = Field(default_factory=dict)


class ControlState(Value):
    """Everything that is known about one application."""

    lease: Lease | None = None
    journal: Journal | None = None
    generations: Generations | None = None
    bridge: Bridge | None = None
    autoscaling: Autoscaling | None = None
    processing: Processing | None = None
    processors: PipelineProcessors = Field(default_factory=PipelineProcessors)
    results: dict[str, JobResult] = Field(default_factory=dict)
    report: dict[str, object] = Field(default_factory=dict)
    acceptances: Acceptances = Field(default_factory=Acceptances)
