"""What green has aborted since the promotion, and what of it is lost.

With exactly-once, Kafka Streams aborts transactions in its normal work: a thread that dies or loses a task goes on
from its last commit, and writes the same records again. If the commits of its inputs go past records whose results
were aborted, these results are lost, and no later run of the application brings them back. The log tells both: the
aborted records are still in it, although consumers with ``read_committed`` never see them.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from kafka_rescale.core.control.acceptances import OffsetRange
from kafka_rescale.core.values import Value, listed
from kafka_rescale.core.verify.misrouted import Span

SHOWN = 10


class AbortedRecord(Value):
    """A record of an aborted transaction that was not written again.

    :param key: in hex; empty if the record has no key.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: str = ""


class AbortedReport(Value):
    """The aborted records of one topic.

    :param records: number of records in aborted transactions.
    :param again: number of those that were written again, or merged into a later record of their key.
    :param unclear: number of those that have only a record with a later timestamp, while nothing of their
        transaction came again the same.
    :param undecided: number of those that have no later record yet, while green has not processed its inputs.
    :param lost: number of those that have no later record although green has processed its inputs.
    :param first: some of the lost ones.
    :param spans: all lost ones by partition.
    """

    topic: str
    records: int
    again: int = 0
    unclear: int = 0
    undecided: int = 0
    lost: int = 0
    first: tuple[AbortedRecord, ...] = ()
    spans: tuple[Span, ...] = ()

    @property
    def findings(self) -> tuple[OffsetRange, ...]:
        """The findings that a person may accept."""
        return tuple(OffsetRange(self.topic, s.partition, s.first, s.last) for s in self.spans)


class Aborted(Value):
    """What is known of green's aborted transactions.

    :param topics: topics with aborted records.
    :param unprocessed: partitions with records that green has not processed yet. Until it has, some of its tasks
        may still restore, and may still abort.
    :param unread: partitions that were not read to their end, because that would have taken too long.
    """

    topics: tuple[AbortedReport, ...] = ()
    unprocessed: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    unread: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)

    @property
    def lost(self) -> int:
        """Number of lost records in all topics."""
        return sum(each.lost for each in self.topics)

    @property
    def unclear(self) -> int:
        """Number of aborted records in all topics of which the log does not tell whether they came again."""
        return sum(each.unclear for each in self.topics)

    @property
    def undecided(self) -> int:
        """Number of aborted records in all topics that may still be written again."""
        return sum(each.undecided for each in self.topics)


def told_aborted(found: Aborted | None) -> str:
    """Return in sentences what is known of aborted transactions; empty if there were none, and nothing is left.

    :param found: None if they were not looked for.
    """
    if found is None:
        return ""
    sentences = [_told_topic(each) for each in found.topics]
    if found.undecided or found.unprocessed:
        waits = listed(found.unprocessed) if found.unprocessed else "some transactions are open or not read"
        sentences.append(
            f"The new generation has not processed everything yet ({waits}), and may still abort and write again: "
            "ask `python -m kafka_rescale aborted FILE` later"
        )
    if found.unread:
        sentences.append(f"Not read for aborted transactions, because it took too long: {listed(found.unread)}")
    if found.unclear:
        sentences.append(
            "An unclear record has a later one of its key, which may contain it or not: compare the outputs with "
            "the inputs of that time"
        )
    return ". ".join(sentences)


def _told_topic(of: AbortedReport) -> str:
    parts = ((of.again, "written again"), (of.unclear, "unclear"), (of.undecided, "not yet"), (of.lost, "lost"))
    counted = ", ".join(f"{count:,} {name}" for count, name in parts if count)
    return f"{of.topic}: {of.records:,} records in aborted transactions ({counted})"


def remedy_of_lost(reports: Sequence[AbortedReport]) -> str:
    """Return what a person does about records that green has lost by itself.

    :param reports: those with findings.
    """
    options = " ".join(f"--finding {finding}" for each in reports for finding in each.findings)
    return (
        "Kafka Streams has aborted these records, and its commits have passed what they came from. No restart "
        "brings them back. Look for the keys of the report in the outputs and in the inputs of that time, and "
        "send again what is missing. If a punctuator writes them, they come with its next run: clear verify then. "
        "Accept what has been dealt with: "
        f"`python -m kafka_rescale accept FILE --reason TEXT {options}`."
    )
