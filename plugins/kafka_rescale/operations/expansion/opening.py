"""Who may open and close the warm-up gate: one try of one task. A later try takes that over.

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
    """The right of one try to open and to close the gate.

    :param attempt: number of the attempt in the journal.
    :param number: of this try; the journal has that of the latest try.
    """

    rescale: Rescale
    attempt: int
    number: int

    @classmethod
    def taken(cls, rescale: Rescale, journal: Journal) -> Self:
        """Take over from an earlier try, and return the right.

        :param journal: the journal that the try began with.
        :raises Fenced: the attempt has ended meanwhile, or its cutover has begun.
        """
        opening = cls(rescale, journal.attempt, 1 + secrets.randbits(52))

        def take(present: Journal) -> Journal:
            opening.check_attempt(present)
            return present.advanced(Phase.WARMING, now_ms=now_ms(), opening=opening.number)

        rescale.change(take)
        return opening

    def advance(self, **changes: object) -> Journal:
        """Write changes of the journal, whose phase stays, if this right still holds.

        :raises Fenced: it does not hold any more.
        """

        def change(present: Journal) -> Journal:
            self.check(present)
            return present.advanced(Phase.WARMING, now_ms=now_ms(), **changes)

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
        self.check_attempt(journal)
        if journal.opening != self.number:
            raise self._overtaken("a later try of this task, which has taken over")

    def check_attempt(self, journal: Journal) -> None:
        """Check that the attempt goes on, and that its cutover has not begun.

        :raises Fenced: it has ended, or its cutover has begun.
        """
        if journal.phase is not Phase.WARMING or journal.attempt != self.attempt:
            raise self._overtaken(f"attempt {journal.attempt}, phase {journal.told}")

    def _overtaken(self, found: str) -> Fenced:
        return Fenced(
            f"warm-up gate of {self.rescale.application.application_id}",
            found=found,
            expected=f"attempt {self.attempt} in phase {Phase.WARMING}, and no later try",
            remedy="Nothing to do here: nothing was stopped by this try, and what is in the journal goes on.",
        )
