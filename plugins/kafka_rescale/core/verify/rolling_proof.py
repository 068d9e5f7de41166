"""What the job that copies has compared behind the proof, stretch by stretch, up to the last record of blue.

Each stretch goes from the previous fence to a new fence. A key with a record at or behind the new fence is left to
the next stretch. A proof leaves out the keys that blue has written since its fence. If that fence lies at or
behind the first fence of the stretches, they judge these keys, so there is no gap. The last stretch ends where
blue was stopped, and leaves nothing out.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from kafka_rescale.core.control.acceptances import Acceptances
from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.core.verify.proof import CopiesCompared
from kafka_rescale.core.verify.report import StoreReport


def compared_by(run: str, attempt: int) -> str:
    """Return the name of a try of a job, as in ``RollingProof.by``."""
    return f"{run}, try {attempt}"


class RollingProof(CopiesCompared):
    """What was compared behind the proof, in all stretches so far.

    :param began: the first fence: everything of blue at or behind it has been compared, up to ``fences``.
    :param stretches: how many stretches there are.
    :param last_seconds: how long the comparison of the last stretch took.
    :param is_complete: whether blue was stopped, so that nothing comes behind ``fences``.
    :param by: the try of the job that has compared the last stretch (``compared_by``); empty if an earlier version
        of this program has. Its clock dates ``fences``.
    """

    began: PartitionOffsets
    stretches: int = 0
    last_seconds: float = 0.0
    is_complete: bool = False
    by: str = Field(default="", exclude_if=lambda by: not by)

    @classmethod
    def begun(cls, journal: Journal, fences: Fences) -> RollingProof:
        """Return the rolling proof before its first stretch."""
        return cls(
            application=journal.plan.application,
            plan=journal.plan.fingerprint,
            attempt=journal.attempt,
            seconds=0.0,
            fences=fences,
            began=fences.fence,
        )

    def extended(
        self,
        fences: Fences,
        stores: Sequence[StoreReport],
        seconds: float,
        *,
        is_complete: bool = False,
        by: str = "",
    ) -> RollingProof:
        """Return the rolling proof after another stretch.

        :param fences: the end of the stretch.
        :param stores: the reports about the stretch. Their stores have the same order in every stretch.
        :param seconds: how long its comparison took.
        :param by: the try of the job that has compared it.
        """
        return self.model_copy(
            update={
                "fences": fences,
                "stores": tuple(map(_added, self.stores, stores)) if self.stores else tuple(stores),
                "seconds": round(self.seconds + seconds, 3),
                "stretches": self.stretches + 1,
                "last_seconds": round(seconds, 3),
                "is_complete": is_complete,
                "by": by,
            }
        )

    def continues(self, fence: PartitionOffsets) -> bool:
        """Whether it has compared everything from a fence on, as far as it has come."""
        return not _is_before(fence, self.began)

    def has_reached(self, ends: PartitionOffsets) -> bool:
        """Whether it is complete up to these ends of a stopped blue."""
        return self.is_complete and not _is_before(self.fences.fence, ends)

    def unaccepted(self, acceptances: Acceptances) -> tuple[str, ...]:
        """Return the names of the findings that nobody has accepted."""
        known = acceptances.of(self.plan)
        return tuple(name for name in self.compared if name not in known)

    @property
    def told(self) -> str:
        """What was compared, in a sentence."""
        if self.violations:
            return f"{self.violations:,} violations in what was written since, as of {self.until}"
        return (
            f"what was written since is compared up to {self.until}: {self.records:,} records of both "
            f"generations, in {self.stretches:,} stretches"
        )


def _is_before(fence: PartitionOffsets, other: PartitionOffsets) -> bool:
    """Whether a fence lies before another one in some partition; a partition that it lacks counts as 0."""
    return any(fence.get(t, {}).get(p, 0) < offset for t, of in other.items() for p, offset in of.items())


def _added(before: StoreReport, report: StoreReport) -> StoreReport:
    """Return both reports as one. Keys that were left out before have been judged since, or are left out again."""
    return before.plus(report).model_copy(update={"excused": report.excused})
