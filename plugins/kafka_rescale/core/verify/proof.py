"""The proof of the whole state before the promotion, and whether a promotion may rely on it.

A proof says: everything that blue had below the fence is in green. The copies go on behind it, so this stays true
for as long as green's topics keep what was compared. A topic that was made anew has another id. A copy that was
begun anew has been emptied first, so that its log starts behind everything that was compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic import Field

from kafka_rescale.core.control.acceptances import Acceptance, Acceptances
from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.values import Value
from kafka_rescale.core.verify.oracles import KeyFinding
from kafka_rescale.core.verify.report import StoreReport, compared_stores

NAMED = 5


class Fences(Value):
    """Positions of a running copy, and what they say about the logs. ``kafka.copy.fences`` reads them.

    :param begun: per blue changelog partition, a position of the copy: everything below it is in green below
        ``green_begun``.
    :param green_begun: ends of green: nothing that was copied from blue at or behind ``fence`` stands below them.
    :param fence: a later position: everything of blue below it is in green below ``green_ends``.
    :param green_ends: ends of green; it may hold later records as well below them.
    :param green_begins: log starts of green, read first.
    :param green_topics: ids of green's topics, read first.
    :param blue_ends: ends of blue, read last.
    :param as_of_ms: wall clock just before ``fence`` was read.
    :param copied_as_of_ms: by blue's topics, wall clock as of which the copy had read the whole topic: everything
        at or behind ``fence`` was written later.
    """

    begun: PartitionOffsets
    green_begun: PartitionOffsets
    fence: PartitionOffsets
    green_ends: PartitionOffsets
    green_begins: PartitionOffsets
    green_topics: dict[str, str]
    blue_ends: PartitionOffsets
    as_of_ms: int
    copied_as_of_ms: dict[str, int]

    def lost(self, present: Mapping[str, str], begins: PartitionOffsets) -> str:
        """Return how green's topics have lost what stood below these ends; an empty text if they have not.

        :param present: ids of green's topics now.
        :param begins: log starts of green's topics now.
        """
        for topic, known in self.green_topics.items():
            if present.get(topic) != known:
                return f"topic {topic!r} was made anew since, or is gone"
            for p, begin in self.green_begins[topic].items():
                ends = self.green_begun[topic][p], self.green_ends[topic][p]
                if any(begin < end <= begins.get(topic, {}).get(p, 0) for end in ends):
                    return f"topic {topic!r} was emptied since (partition {p})"
        return ""


class Proof(Value):
    """A comparison of blue and green while blue works.

    :param plan: fingerprint of the plan.
    :param attempt: the journal's, when the proof began.
    :param seconds: how long it took.
    :param unaccepted: names of the findings that were not accepted; without any, it has passed.
    :param acceptances: accepted findings, each with the person and the reason.
    """

    application: str
    plan: str
    attempt: int
    passed: bool = False
    seconds: float
    fences: Fences
    stores: tuple[StoreReport, ...] = ()
    unaccepted: tuple[str, ...] = ()
    acceptances: tuple[Acceptance, ...] = Field(default_factory=tuple)

    @property
    def findings(self) -> tuple[KeyFinding, ...]:
        """All listed findings; at most ``MAX_FINDINGS`` per store and oracle."""
        return tuple(f for s in self.stores for f in s.findings)

    @property
    def compared(self) -> dict[str, int]:
        """The names of the findings about stores, each with the number of violations."""
        return compared_stores(self.stores)

    @property
    def records(self) -> int:
        """How many records were read of both generations."""
        return sum(s.blue.records + s.green.records for s in self.stores)

    @property
    def entries(self) -> int:
        """How many live entries of green were found equal to blue's, if it has passed."""
        return sum(s.green.live for s in self.stores)

    @property
    def excused(self) -> int:
        """How many keys blue has written since the fence, so that they were not judged."""
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
        at = datetime.fromtimestamp(self.fences.as_of_ms / 1000, UTC).isoformat(timespec="seconds")
        if not self.passed:
            return f"{sum(self.compared.values()):,} violations in the copies as of {at}"
        accepted = f", {len(self.acceptances)} findings accepted" if self.acceptances else ""
        return (
            f"{self.entries:,} entries of {len(self.stores)} stores are the same in both generations as of {at}"
            f"{accepted}; {self.excused:,} keys written since were left out"
        )

    @property
    def refusal(self) -> UnsafeState:
        """The error about findings, with the first keys."""
        named = [f"{f.subject} key 0x{f.key} ({f.oracle}: {f.detail})" for f in self.findings[:NAMED]]
        options = " ".join(f"--finding {name}" for name in self.unaccepted)
        return UnsafeState(
            f"copies of {self.application}",
            found=f"{sum(self.compared.values()):,} violations, the first: {'; '.join(named)}",
            expected="two equal generations",
            remedy="Nothing was promoted, and the application works as it did. The log of the prove task has all "
            "findings. Delete the new generation's topics, so that they are copied anew, or accept what you have "
            f"seen to: `python -m kafka_rescale accept FILE --reason TEXT {options}`; then trigger again.",
        )


def needs_proof(plan: Plan) -> bool:
    """Whether there are copies to be proven before the promotion. In place, records are moved after it."""
    return bool(plan.changelogs) and not plan.is_in_place


def is_of(record: Mapping[str, object], journal: Journal) -> bool:
    """Whether a proof in the control topic is about the plan of this journal."""
    return record.get("plan") == journal.plan.fingerprint


def required_proof(journal: Journal, record: Mapping[str, object]) -> Proof | None:
    """Return the proof that a promotion relies on; None if it needs none.

    :param record: what the control topic has.
    :raises UnsafeState: there is none about these copies, or it has findings.
    """
    if not needs_proof(journal.plan):
        return None
    proof = Proof.model_validate(record) if record else None
    if proof is None:
        raise _unproven(journal, "no proof of the copies")
    if proof.plan != journal.plan.fingerprint:
        raise _unproven(journal, f"a proof of another plan ({proof.plan})")
    if proof.attempt != journal.attempt:
        raise _unproven(journal, f"a proof of attempt {proof.attempt}")
    if not proof.passed:
        raise _unproven(journal, f"a proof with {sum(proof.compared.values()):,} violations")
    return proof


def assert_same_topics(
    journal: Journal, proof: Proof, present: Mapping[str, str], begins: PartitionOffsets
) -> None:
    """Check that green's topics still have what was compared.

    :param present: ids of green's topics now.
    :param begins: log starts of green's topics now.
    :raises UnsafeState: a topic was made anew or emptied since.
    """
    if lost := proof.fences.lost(present, begins):
        raise _unproven(journal, f"a proof of copies that are gone: {lost}")


def _unproven(journal: Journal, found: str) -> UnsafeState:
    return UnsafeState(
        f"promotion of {journal.plan.green}",
        found=found,
        expected=f"a proof that has passed, of plan {journal.plan.fingerprint} and attempt {journal.attempt}",
        remedy="Trigger the expansion again: it goes on with the copies that exist, and its prove task compares "
        "them.",
    )
