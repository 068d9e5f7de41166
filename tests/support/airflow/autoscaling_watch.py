"""A watch that looks again and again, and what it may see. The test sets its clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.autoscaling.decision import Decision, Look, RunState
from kafka_rescale.core.autoscaling.parallelism import Mismatch, Observed
from kafka_rescale.core.control.autoscaling import Autoscaling
from kafka_rescale.core.control.journal import Journal, Phase

from tests.support.situations import situation
from tests.support.small_application import application

MINUTE = 60_000
TIMEOUT = 15 * MINUTE
IN_LINE = Observed(running="shop", grown={}, partitions=32)
GROWN = Observed(
    running="shop",
    grown={"shop-orders": (4, 8)},
    too_few=(Mismatch("shop-visits-changelog", 4, 8),),
    partitions=36,
)
OVER = Observed(running="shop", grown={}, too_many=(Mismatch("shop-visits-changelog", 8, 4),), partitions=36)


def declared(*, enabled: bool = True, **fields: Any) -> Application:
    """The application, scaled automatically unless said otherwise."""
    return application("shop", **{"partition.autoscaling.enabled": enabled, **fields})


def growing(phase: Phase = Phase.PROMOTED, **changes: Any) -> Observed:
    """An expansion to 8 in progress."""
    plan = situation(8).plan
    fields = {"running": "shop-g2", "grown": {}, "partitions": 40, **changes}
    return Observed(in_progress=Journal(plan=plan, phase=phase, owner="expand_shop/a-person"), **fields)


@dataclass
class Watch:
    """Looks again and again, as the DAG does. The test sets its clock."""

    application: Application = field(default_factory=declared)
    record: Autoscaling = field(default_factory=Autoscaling)
    now_ms: int = 1_000_000
    looks: int = 0

    def look(
        self,
        observed: Observed = GROWN,
        run: RunState = RunState.ABSENT,
        *,
        owner: RunState = RunState.FAILED,
        later_ms: int = 2 * MINUTE,
        retried: bool = False,
        held_by: str = "",
        is_leased: bool = False,
    ) -> Decision:
        """Look once. With ``retried``, the same task looks again after its worker was killed."""
        self.looks += 0 if retried else 1
        self.now_ms += later_ms
        by = f"watch_shop/{self.looks}"
        decision = Look(
            self.application, observed, self.record, run, owner, by, self.now_ms, held_by, is_leased
        ).decide()
        self.record = decision.record
        return decision
