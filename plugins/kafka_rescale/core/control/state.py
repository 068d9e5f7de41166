"""What the control topic keeps per application, one key per concern."""

from __future__ import annotations

from pydantic import Field

from kafka_rescale.core.control.acceptances import Acceptances
from kafka_rescale.core.control.autoscaling import Autoscaling
from kafka_rescale.core.control.bridge import Bridge, ReplacedBridges, bridging
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.history import PastExpansion
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.pace import Pace, Rate
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.control.switch import Switch
from kafka_rescale.core.values import Value


class ControlState(Value):
    """Everything that the control topic keeps about one application."""

    lease: Lease | None = None
    journal: Journal | None = None
    switch: Switch | None = None
    pace: Pace | None = None
    rates: dict[str, Rate] = Field(default_factory=dict)
    generations: Generations | None = None
    bridge: Bridge | None = None
    replaced: ReplacedBridges | None = None
    autoscaling: Autoscaling | None = None
    processing: Processing | None = None
    processors: PipelineProcessors = Field(default_factory=PipelineProcessors)
    results: dict[str, JobResult] = Field(default_factory=dict)
    report: dict[str, object] = Field(default_factory=dict)
    proof: dict[str, object] = Field(default_factory=dict)
    proof_progress: dict[str, object] = Field(default_factory=dict)
    rolling_proof: dict[str, object] = Field(default_factory=dict)
    acceptances: Acceptances = Field(default_factory=Acceptances)
    history: dict[str, PastExpansion] = Field(default_factory=dict)

    @property
    def replaced_promotion(self) -> Journal | None:
        """The journal of the running generation's promotion, if it has bridges and another expansion has begun."""
        journal = self.replaced.journal if self.replaced is not None else None
        running = self.generations.generation if self.generations is not None else 0
        return journal if journal is not None and journal.plan.generation == running else None

    @property
    def bridging(self) -> Journal | None:
        """The journal whose bridges may have work: the last promotion's, if the next attempt was rolled back."""
        return bridging(self.journal, self.replaced_promotion)

    @property
    def copied(self) -> PartitionOffsets:
        """Ends (exclusive) of what expansions have copied to topics of the running generation, as far as known."""
        known = self.generations.copied if self.generations is not None else {}
        last = self.journal.green_ends if self.journal is not None and self.journal.is_promoted else {}
        return {**known, **last}

    def bridge_of(self, journal: Journal | None) -> Bridge | None:
        """Return the record of a journal's bridges; those of another expansion have a record of their own."""
        kept = self.replaced.bridge if self.replaced is not None else None
        fingerprint = journal.plan.fingerprint if journal is not None else ""
        return next((b for b in (self.bridge, kept) if b is not None and b.plan == fingerprint), None)
