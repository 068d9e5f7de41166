"""The report of verify about an expansion."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from operator import add

from pydantic import Field

from kafka_rescale.core.control.acceptances import Acceptance, Acceptances
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.values import Value
from kafka_rescale.core.verify.aborted import Aborted, AbortedReport, remedy_of_lost
from kafka_rescale.core.verify.misrouted import InputReport, remedy_of
from kafka_rescale.core.verify.oracles import KeyFinding, Oracle, printable

MAX_FINDINGS = 20
START_OFFSETS = "start-offsets"


class LogCount(Value):
    """Records read; ``live`` and ``tombstoned`` count keys by their last record, without expired keys."""

    records: int = 0
    live: int = 0
    tombstoned: int = 0

    def plus(self, other: LogCount) -> LogCount:
        """Return the sum."""
        return LogCount(
            records=self.records + other.records,
            live=self.live + other.live,
            tombstoned=self.tombstoned + other.tombstoned,
        )


class PartitionContent(Value):
    """Live entries that belong to one partition of green; the hashes don't depend on the order of entries."""

    partition: int
    blue_live: int
    green_live: int
    blue_hash: str
    green_hash: str

    def plus(self, other: PartitionContent) -> PartitionContent:
        """Return both as one: the hashes are sums over entries."""
        return PartitionContent(
            partition=self.partition,
            blue_live=self.blue_live + other.blue_live,
            green_live=self.green_live + other.green_live,
            blue_hash=_hash_sum(self.blue_hash, other.blue_hash),
            green_hash=_hash_sum(self.green_hash, other.green_hash),
        )


class StoreReport(Value):
    """The findings about one store.

    :param expired: number of entries on one side only that retention may have deleted on the other.
    :param surplus: number of green's records that are older than all records that blue still has of the key: blue
        was compacted since.
    :param partitions: by green's partitions. If keys are ``excused``, both sides may differ by some of them.
    :param blue_partitions: live entries of blue by its own partitions.
    :param excused: number of keys that blue has written since the fence of a proof, and that were not judged;
        None if blue was stopped.
    :param failures: violations per oracle; ``findings`` lists the first of each.
    """

    store: str
    store_type: str
    blue_topic: str
    green_topic: str
    blue: LogCount
    green: LogCount
    expired: int
    surplus: int
    partitions: tuple[PartitionContent, ...]
    blue_partitions: tuple[int, ...] = ()
    excused: int | None = None
    failures: dict[Oracle, int] = Field(default_factory=dict)
    findings: tuple[KeyFinding, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every oracle holds for this store."""
        return not self.failures

    def plus(self, other: StoreReport) -> StoreReport:
        """Return one report from this one and a report about other records of the same store."""
        failures = {
            o: self.failures.get(o, 0) + other.failures.get(o, 0) for o in (*self.failures, *other.failures)
        }
        listed: dict[Oracle, list[KeyFinding]] = {}
        for finding in (*self.findings, *other.findings):
            listed.setdefault(finding.oracle, []).append(finding)
        return self.model_copy(
            update={
                "blue": self.blue.plus(other.blue),
                "green": self.green.plus(other.green),
                "expired": self.expired + other.expired,
                "surplus": self.surplus + other.surplus,
                "partitions": _merged(self.partitions, other.partitions),
                "blue_partitions": tuple(map(add, self.blue_partitions, other.blue_partitions)),
                "excused": None if self.excused is None else self.excused + (other.excused or 0),
                "failures": failures,
                "findings": tuple(f for found in listed.values() for f in found[:MAX_FINDINGS]),
            }
        )

    @property
    def finding(self) -> str:
        """The name of this outcome. Another comparison has the same name only if its outcome is the same.

        While blue writes, its content is never the same twice. Then the violations themselves are the outcome.
        """
        if self.excused is not None:
            return _named(self.store, [sorted(self.failures.items()), [f.model_dump() for f in self.findings]])
        sides = [(p.partition, p.blue_hash, p.green_hash) for p in self.partitions]
        return _named(self.store, [sorted(self.failures.items()), sides])


class Report(Value):
    """The proof of one expansion, as the control topic and the page keep it.

    :param plan: fingerprint of the plan: a report of another expansion proves nothing about this one.
    :param promotion: hash of the promotion in the journal that was verified.
    :param as_of_ms: when verify began, ms since the epoch.
    :param start_offsets: findings about the offsets that green started from.
    :param inputs: findings in the inputs that were grown by key.
    :param unaccepted: names of all findings that were not accepted. If there are none, verify has passed.
    :param acceptances: accepted findings, each with the person and the reason.
    :param compared_before: stores that were compared before the promotion, up to blue's last record.
    :param not_copied: stores that have no changelog, so that nothing of them was copied, and nothing compared.
    :param aborted: what green has lost by itself since the promotion; None if this was not looked for.
    """

    application: str
    blue: str
    green: str
    generation: int
    plan: str
    passed: bool
    as_of_ms: int
    seconds: float
    start_offsets: tuple[KeyFinding, ...]
    stores: tuple[StoreReport, ...]
    inputs: tuple[InputReport, ...] = ()
    unaccepted: tuple[str, ...] = ()
    acceptances: tuple[Acceptance, ...] = ()
    promotion: str = ""
    compared_before: tuple[str, ...] = ()
    not_copied: tuple[str, ...] = Field(default=(), exclude_if=lambda stores: not stores)
    aborted: Aborted | None = Field(default=None, exclude_if=lambda found: not found)

    @property
    def findings(self) -> tuple[KeyFinding, ...]:
        """All listed findings; at most ``MAX_FINDINGS`` per store and oracle."""
        return (*self.start_offsets, *self.misrouted, *self.lost, *(f for s in self.stores for f in s.findings))

    @property
    def compared(self) -> dict[str, int]:
        """The names of the findings that the report alone tells, each with the number of violations."""
        stores = compared_stores(self.stores)
        started = {
            _named(START_OFFSETS, [f.model_dump_json() for f in self.start_offsets]): len(self.start_offsets)
        }
        lost = {
            str(finding): span.records
            for each in self._with_aborted
            for finding, span in zip(each.findings, each.spans, strict=True)
        }
        return {**(started if self.start_offsets else {}), **stores, **lost}

    def concluded(self, acceptances: Acceptances) -> Report:
        """Return the report with its verdict, which takes accepted findings into account."""
        known = acceptances.of(self.plan)
        found = (*self.compared, *(str(f) for i in self.inputs for f in i.findings))
        # What retention has deleted since is no longer part of a range.
        within = {
            str(finding)
            for each in self._with_aborted
            for finding in each.findings
            if any(accepted.has(finding) for accepted in acceptances.ranges(self.plan, each.topic))
        }
        unaccepted = tuple(f for f in found if f not in known and f not in within)
        topics = {i.topic for i in self.inputs} | {s.blue_topic for s in self.stores}
        used = tuple(a for a in known.values() if a.finding in found or a.topic in topics)
        return self.model_copy(update={"unaccepted": unaccepted, "acceptances": used, "passed": not unaccepted})

    @property
    def misrouted(self) -> tuple[KeyFinding, ...]:
        """The first misrouted records of every input."""
        return tuple(
            _finding(
                Oracle.MISROUTED, i.topic, m.partition, m.key, f"offset {m.offset} belongs to partition {m.home}"
            )
            for i in self.inputs
            for m in i.first
        )

    @property
    def lost(self) -> tuple[KeyFinding, ...]:
        """The first records of every topic that green has lost by itself."""
        return tuple(
            _finding(
                Oracle.ABORTED,
                each.topic,
                r.partition,
                r.key,
                f"offset {r.offset}, timestamp {r.timestamp_ms}: aborted, and not written again",
            )
            for each in self._with_aborted
            for r in each.first
        )

    @property
    def _with_aborted(self) -> tuple[AbortedReport, ...]:
        return self.aborted.topics if self.aborted else ()


def _finding(oracle: Oracle, topic: str, partition: int, key: str, detail: str) -> KeyFinding:
    """Return a finding about one record.

    :param key: in hex.
    """
    text = printable(bytes.fromhex(key))
    return KeyFinding(oracle=oracle, subject=f"{topic}-{partition}", detail=detail, key=key, text=text)


def compared_stores(stores: Iterable[StoreReport]) -> dict[str, int]:
    """Return the names of the findings about stores, each with the number of violations."""
    return {s.finding: sum(s.failures.values()) for s in stores if not s.passed}


def _merged(a: Sequence[PartitionContent], b: Sequence[PartitionContent]) -> tuple[PartitionContent, ...]:
    """Add contents by partition, in the order of the partitions. The report of a part may lack some."""
    found: dict[int, PartitionContent] = {}
    for each in (*a, *b):
        known = found.get(each.partition)
        found[each.partition] = known.plus(each) if known is not None else each
    return tuple(found[partition] for partition in sorted(found))


def _hash_sum(a: str, b: str) -> str:
    """Add hashes of two halves of eight hexadecimal digits each, as a comparison makes them."""
    halves = ((int(a[at : at + 8], 16) + int(b[at : at + 8], 16)) % 2**32 for at in (0, 8))
    return "".join(f"{half:08x}" for half in halves)


def _named(subject: str, content: object) -> str:
    return f"{subject}@{sha256(json.dumps(content).encode()).hexdigest()[:12]}"


def to_be_verified(application: str, journal: Journal | None) -> Journal:
    """Return the journal if there is an expansion whose state can be compared.

    :raises Refused: no cutover has started the new generation yet.
    """
    # Between the promotion and the start, what green began with may not be known yet.
    if journal is None or not journal.is_promoted or journal.phase is Phase.PROMOTED:
        raise Refused(
            f"verification of {application}",
            found="no expansion" if journal is None else f"an expansion in phase {journal.told}",
            expected="an expansion whose cutover has started the new generation",
            remedy="Run verify after the cutover. If that has failed, clear its task: it goes on where it was.",
        )
    return journal


def is_about(report: Mapping[str, object], journal: Journal) -> bool:
    """Whether a report in the control topic is about the promotion of this journal."""
    return report.get("promotion") == journal.promotion


def remedy_beside_copies(report: Mapping[str, object]) -> str:
    """Return what a person does about a report's findings if none is about the copies; else an empty text.

    They are misrouted records, or records that green has lost by itself. Green's copies are whole then, and it
    goes on. After any other finding, it has to be stopped first.

    :param report: a report with findings, as the control topic has it.
    """
    named, inputs = report.get("unaccepted"), report.get("inputs")
    if not isinstance(named, Sequence) or not isinstance(inputs, Sequence):
        return ""
    misrouted = [each for each in map(InputReport.model_validate, inputs) if each.findings]
    aborted = Aborted.model_validate(report.get("aborted") or {})
    lost = [each for each in aborted.topics if each.findings]
    beside = {str(finding) for each in misrouted for finding in each.findings}
    beside |= {str(finding) for each in lost for finding in each.findings}
    if not named or not beside.issuperset(named):
        return ""
    return " ".join([*map(remedy_of, misrouted), *([remedy_of_lost(lost)] if lost else [])])
