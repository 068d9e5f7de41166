"""The outcome of setting a group's offsets: ask again, refused, or overwritten by another process."""

from __future__ import annotations

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, TopicPartition

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import ClusterOutage, RescaleError, UnsafeState
from kafka_rescale.kafka.admin.calls import ATTEMPTS, is_unknown, value_of
from kafka_rescale.kafka.admin.topic_reader import ABSENT
from kafka_rescale.kafka.client.error_class import ErrorClass
from kafka_rescale.kafka.client.error_classes import class_of, is_outage
from kafka_rescale.kafka.client.failures import to_error


class GroupCommit:
    """The answers to one commit, which is repeated until the group shows it.

    :param group: the name of a group without members.
    :param offsets: topic → partition → next offset to read.
    """

    def __init__(self, group: str, offsets: PartitionOffsets) -> None:
        self.wanted = [TopicPartition(t, p, o) for t, of in offsets.items() for p, o in of.items()]
        self._what = f"offsets of group {group!r}"
        self._offsets = offsets
        self._found: PartitionOffsets = {}
        self._waiting: dict[str, KafkaError] = {}
        self._overwritten = 0

    def take(self, answer: ConsumerGroupTopicPartitions | KafkaError) -> None:
        """Note the answer to a request.

        :raises RescaleError: the brokers refuse it, and waiting would not help.
        """
        if is_unknown(answer):
            self._waiting = {self._what: answer}
            return
        # The request as a whole succeeds even if single partitions are refused.
        entries = value_of(answer, self._what).topic_partitions
        refused = {f"{t.topic}-{t.partition}": t.error for t in entries if t.error is not None}
        for at, error in refused.items():
            if not _passes(error):
                raise to_error(
                    error, self._what if class_of(error) is ErrorClass.GROUP_IN_USE else f"{self._what} for {at}"
                )
        self._waiting = refused

    def shows(self, found: PartitionOffsets) -> bool:
        """Return whether the group has the offsets.

        :param found: the offsets that it has.
        :raises UnsafeState: ``ATTEMPTS`` commits were accepted, and each time the group had other offsets
            afterwards. So another process sets them.
        """
        self._found = found
        if all(found.get(t.topic, {}).get(t.partition) == t.offset for t in self.wanted):
            return True
        self._overwritten += not self._waiting
        if self._overwritten >= ATTEMPTS:
            raise self.not_in_time()
        return False

    def not_in_time(self) -> RescaleError:
        """Return the error to raise when the time is over and the group does not have the offsets."""
        if not self._waiting:
            return UnsafeState(
                self._what,
                found=f"{self._found}",
                expected=f"{self._offsets}",
                remedy="Another process commits to this group: stop it, then run again.",
            )
        names = sorted({error.name() for error in self._waiting.values()})
        places = ", ".join(sorted(self._waiting.keys() - {self._what}))
        return ClusterOutage(
            f"{self._what} for {places}" if places else self._what,
            found=f"{', '.join(names)} until the time was over",
            expected="every broker to know these partitions, and to answer in time",
            remedy="Run again when the brokers are up and show the topics with all their partitions.",
        )


def _passes(error: KafkaError) -> bool:
    """Whether to ask again.

    A coordinator may not know yet that a topic has grown, even if another broker knows it.
    """
    return is_outage(error) or error.code() in ABSENT
