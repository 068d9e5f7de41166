"""Who may start and stop green before its promotion: one try of one task. A later try takes that over.

A process may be frozen, and Airflow begins its task again meanwhile. When the process wakes, the later try may
have passed, and green may own the inputs. If the late process stopped green then, nobody would run.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Self

from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import Fenced
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.operations.expansion.rescale import Rescale


@dataclass(frozen=True)
class Opening:
    """The right of one try to open the warm-up gate, to close it, and to stop what waits at the door.

    :param attempt: number of the attempt in the journal.
    :param phase: the phase in which the right holds.
    :param number: of this try; the journal has that of the latest try.
    """

    rescale: Rescale
    attempt: int
    phase: Phase
    number: int

    @classmethod
    def shown_by(cls, rescale: Rescale, journal: Journal) -> Self:
        """Return the right of the try that has read or written a journal."""
        return cls(rescale, journal.attempt, journal.phase, journal.opening)

    @classmethod
    def take(cls, rescale: Rescale, journal: Journal) -> Self:
        """Take over from an earlier try, and return the right.

        :param journal: the journal that the try began with.
        :raises Fenced: the attempt has ended meanwhile, or its cutover has begun.
        """
        opening = cls(rescale, journal.attempt, Phase.WARMING, 1 + secrets.randbits(52))

        def change(present: Journal) -> Journal:
            opening._check_attempt(present)
            return present.advanced(present.phase, now_ms=now_ms(), opening=opening.number)

        rescale.change(change)
        return opening

    def advance(self, **changes: object) -> Journal:
        """Write changes of the journal, whose phase stays, if this right still holds.

        :raises Fenced: it does not hold any more.
        """

        def change(present: Journal) -> Journal:
            self.check(present)
            return present.advanced(present.phase, now_ms=now_ms(), **changes)

        return self.rescale.change(change)

    def assert_held(self) -> Journal:
        """Return the present journal, if this right still holds.

        :raises Fenced: it does not hold any more.
        """
        journal = self.rescale.journal()
        self.check(journal)
        return journal

    def check(self, journal: Journal) -> None:
        """Check this right by a journal that was just read.

        :raises Fenced: it does not hold any more.
        """
        self._check_attempt(journal)
        if journal.opening != self.number:
            raise self._overtaken("a later try, which has taken over")

    def _check_attempt(self, journal: Journal) -> None:
        is_same = (journal.attempt, journal.phase) == (self.attempt, self.phase)
        if not is_same or journal.is_promoted:
            raise self._overtaken(f"attempt {journal.attempt}, phase {journal.told}")

    def _overtaken(self, found: str) -> Fenced:
        return Fenced(
            f"warm-up gate of {self.rescale.application.application_id}",
            found=found,
            expected=f"attempt {self.attempt}, phase {self.phase}, and no later try",
            remedy="Nothing to do here: what is in the journal goes on.",
        )
