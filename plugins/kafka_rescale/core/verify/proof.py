"""The proof of the whole state before the promotion.

A proof says: everything that blue had below the fence is in green. The copies only go on behind the fence. So this
stays true for as long as green's topics keep what was compared. What blue writes behind the fence is compared by
the job that copies it (``core.verify.rolling_proof``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import Field

from kafka_rescale.core.control.acceptances import Acceptance, Acceptances
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.not_copied import told_not_copied
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.values import Value, moment
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.core.verify.oracles import KeyFinding
from kafka_rescale.core.verify.report import StoreReport, compared_stores

NAMED = 5


class CopiesCompared(Value):
    """What was compared of blue and of its copies, up to a fence.

    :param plan: fingerprint of the plan.
    :param attempt: number of the attempt in the journal when the comparison began.
    :param seconds: how long it took.
    """

    application: str
    plan: str
    attempt: int
    seconds: float
    fences: Fences
    stores: tuple[StoreReport, ...] = ()

    @classmethod
    def of_record(cls, record: Mapping[str, object], journal: Journal) -> Self | None:
        """Return the record of the control topic, if it is about the copies of this attempt."""
        found = cls.model_validate(record) if record else None
        return found if found is not None and found.is_about(journal) else None

    def is_about(self, journal: Journal) -> bool:
        """Whether it is about the copies of this attempt."""
        return (self.plan, self.attempt) == (journal.plan.fingerprint, journal.attempt)

    @property
    def findings(self) -> tuple[KeyFinding, ...]:
        """All listed findings; at most ``MAX_FINDINGS`` per store and oracle."""
        return tuple(f for s in self.stores for f in s.findings)

    @property
    def compared(self) -> dict[str, int]:
        """The names of the findings about stores, each with the number of violations."""
        return compared_stores(self.stores)

    @property
    def violations(self) -> int:
        """How many violations were found."""
        return sum(self.compared.values())

    @property
    def records(self) -> int:
        """How many records were read of both generations."""
        return sum(s.blue.records + s.green.records for s in self.stores)

    @property
    def until(self) -> str:
        """When the fence was read, for a person."""
        return moment(self.fences.as_of_ms)

    def refused(self, unaccepted: Sequence[str]) -> UnsafeState:
        """Return the error about findings, with the first keys.

        :param unaccepted: names of the findings that nobody has accepted.
        """
        named = [f"{f.subject} key 0x{f.key} ({f.oracle}: {f.detail})" for f in self.findings[:NAMED]]
        options = " ".join(f"--finding {name}" for name in unaccepted)
        return UnsafeState(
            f"copies of {self.application}",
            found=f"{self.violations:,} violations, the first: {'; '.join(named)}",
            expected="two equal generations",
            remedy="Nothing was promoted, and the application works as it did. The log of the prove task, or that "
            "of catch_up, has all findings. Delete the new generation's topics, so that they are copied anew, or "
            f"accept what you have dealt with: `python -m kafka_rescale accept FILE --reason TEXT {options}`; "
            "then trigger again.",
        )


class Proof(CopiesCompared):
    """A comparison of the whole state while blue works.

    :param unaccepted: names of the findings that were not accepted. If there are none, the proof has passed.
    :param acceptances: accepted findings, each with the person and the reason.
    :param not_copied: stores that have no changelog, so that nothing of them was copied, and nothing compared.
    """

    passed: bool = False
    unaccepted: tuple[str, ...] = ()
    acceptances: tuple[Acceptance, ...] = Field(default_factory=tuple)
    not_copied: tuple[str, ...] = Field(default=(), exclude_if=lambda stores: not stores)

    @property
    def entries(self) -> int:
        """How many live entries of green were found equal to blue's, if the proof has passed."""
        return sum(s.green.live for s in self.stores)

    @property
    def excused(self) -> int:
        """How many keys were not judged, because blue has written them since the fence."""
        return sum(s.excused or 0 for s in self.stores)

    def concluded(self, acceptances: Acceptances) -> Proof:
        """Return the proof with its verdict, which takes accepted findings into account."""
        known, found = acceptances.of(self.plan), self.compared
        unaccepted = tuple(f for f in found if f not in known)
        used = tuple(a for a in known.values() if a.finding in found)
        return self.model_copy(update={"unaccepted": unaccepted, "acceptances": used, "passed": not unaccepted})

    @property
    def told(self) -> str:
        """What was proven and up to when, in a sentence."""
        if not self.passed:
            return f"{self.violations:,} violations in the copies as of {self.until}"
        accepted = f", {len(self.acceptances)} findings accepted" if self.acceptances else ""
        beside = f". {told_not_copied(self.not_copied)}" if self.not_copied else ""
        return (
            f"{self.entries:,} entries of {len(self.stores)} stores are the same in both generations as of "
            f"{self.until}{accepted}; {self.excused:,} keys written since were left out{beside}"
        )


def needs_proof(plan: Plan) -> bool:
    """Whether there are copies to prove before the promotion. In place, records are moved after the promotion."""
    return bool(plan.changelogs) and not plan.is_in_place


def is_of(record: Mapping[str, object], journal: Journal) -> bool:
    """Whether a proof in the control topic is about the plan of this journal."""
    return record.get("plan") == journal.plan.fingerprint
