"""Growing topics: ``Admin#createPartitions`` is not atomic, so only topics that have not grown are tried again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import NewPartitions

from kafka_rescale.core.errors import ClusterOutage, InvalidInput, RescaleError, UnsafeState
from kafka_rescale.kafka.admin.calls import (
    CHANGE_SECONDS,
    SETTLE_SECONDS,
    has_code,
    is_unknown,
    lacks_brokers,
    value_of,
)
from kafka_rescale.kafka.admin.topic_reader import TopicReader, too_few_brokers
from kafka_rescale.kafka.client.failures import to_error
from kafka_rescale.kafka.client.waiting import poll_until

BROKERS_KNOW_SECONDS = 10.0
"""After this time every broker knows of new partitions (KIP-878)."""


class GrowingTopics(TopicReader):
    """The part of ``ClusterAdmin`` that adds partitions."""

    def grow_topic(self, name: str, target: int) -> bool:
        """Grow one topic. Return whether it had fewer partitions than its target.

        :raises RescaleError: as ``grow_topics`` does.
        """
        return name in self.grow_topics({name: target})

    def await_growth(self, counted: Mapping[str, int], otherwise: RescaleError) -> None:
        """Wait until another client has grown a topic: the topic has more partitions than were counted.

        :param counted: partitions by topic. It is enough if one of these topics has grown.
        :param otherwise: the error to raise if no count has changed for ``BROKERS_KNOW_SECONDS``. By then, every
            broker would know of a growth.
        :raises RescaleError: ``otherwise``, or the brokers don't answer.
        """

        def has_grown() -> bool:
            return any(topic.partitions > counted[name] for name, topic in self.describe_topics(counted).items())

        poll_until(has_grown, seconds=BROKERS_KNOW_SECONDS, otherwise=lambda: otherwise)

    def validate_growth(self, targets: Mapping[str, int]) -> None:
        """Let brokers check the growth of topics without changing the topics.

        All topics are in one request, because a limit of the brokers may count their new partitions together.

        :param targets: partitions by topic.
        :raises RescaleError: brokers would refuse a topic, or it can't be grown to its target at all.
        """
        short = {name: targets[name] for name, count in self._counts(targets).items() if count < targets[name]}
        answers: dict[str, Any] = {}

        def answered() -> bool:
            answers.update(self._ask(short, validate_only=True))
            return not any(map(_may_change, answers.values()))

        def outage() -> RescaleError:
            name = min(name for name, answer in answers.items() if _may_change(answer))
            if lacks_brokers(answers[name]):
                return too_few_brokers(name, answers[name])
            return to_error(answers[name], _growth_of(name, short[name]))

        if short:
            poll_until(answered, seconds=CHANGE_SECONDS, otherwise=outage)
        for name, answer in sorted(answers.items()):
            value_of(answer, _growth_of(name, short[name]))

    def grow_topics(self, targets: Mapping[str, int]) -> dict[str, int]:
        """Grow topics to their targets, and wait until that shows.

        One request may succeed for some topics and fail for others. So this describes the topics again, and asks
        again only for the rest, for ``CHANGE_SECONDS`` (KIP-878).

        :param targets: partitions by topic.
        :returns: the earlier count of every topic that has grown by this call.
        :raises InvalidInput: a topic doesn't exist; nothing has been asked for.
        :raises UnsafeState: a topic has more partitions than its target, and nothing has been asked for; or
            brokers refuse to grow a topic, and the others have grown.
        :raises Outage: some topics have not grown in time; the error names them, and the others have grown.
        """
        before = self._counts(targets, seconds=SETTLE_SECONDS)
        growth = _Growth(targets, before)

        def done() -> bool:
            if asked := growth.to_ask:
                growth.take(self._ask(asked))
            growth.look(self._counts(targets, seconds=SETTLE_SECONDS))
            return not growth.waiting

        if growth.waiting:
            poll_until(done, seconds=CHANGE_SECONDS, otherwise=growth.not_in_time)
        growth.raise_refused()
        return {name: count for name, count in before.items() if count < targets[name]}

    def _ask(self, targets: Mapping[str, int], *, validate_only: bool = False) -> dict[str, Any]:
        wanted = [NewPartitions(name, target) for name, target in sorted(targets.items())]
        return self._once(
            lambda client, seconds: client.create_partitions(
                wanted, request_timeout=seconds, validate_only=validate_only
            )
        )

    def _counts(self, targets: Mapping[str, int], *, seconds: float = 0.0) -> dict[str, int]:
        """Return the present counts.

        :param seconds: how long to ask for a topic that brokers don't know. Behind the promotion, a broker that
            has just started must not end the way to the start of green.
        :raises RescaleError: a topic can't be grown to its target at all.
        """
        found = self.existing_topics(targets, seconds=seconds, otherwise=lambda names: _no_such_topic(min(names)))
        for name, target in targets.items():
            if found[name].partitions > target:
                raise UnsafeState(
                    f"topic {name!r}",
                    found=f"{found[name].partitions} partitions",
                    expected=f"at most {target}",
                    remedy=f"No topic can shrink: aim at {found[name].partitions} or more.",
                )
        return {name: topic.partitions for name, topic in found.items()}


def _may_change(answer: object) -> bool:
    """Whether to ask again.

    Too few brokers for the replicas is a passing state: the topic exists, so there were enough brokers before.
    """
    return is_unknown(answer) or lacks_brokers(answer)


def _no_such_topic(name: str) -> InvalidInput:
    return InvalidInput(
        f"topic {name!r}",
        found="no such topic",
        expected="a topic to grow",
        remedy="Correct its name in the application file.",
    )


def _growth_of(name: str, target: int) -> str:
    return f"growth of topic {name!r} to {target} partitions"


class _Growth:
    """The state of one growth of several topics."""

    def __init__(self, targets: Mapping[str, int], counts: Mapping[str, int]) -> None:
        self._targets = targets
        self._short = {name for name, target in targets.items() if counts[name] < target}
        self._begun = frozenset(self._short)
        self._accepted: set[str] = set()
        self._refused: dict[str, KafkaError] = {}
        self._last: dict[str, KafkaError] = {}

    @property
    def to_ask(self) -> dict[str, int]:
        """The topics that are short of their targets, and neither accepted nor refused."""
        names = self._short - self._accepted - self._refused.keys()
        return {name: self._targets[name] for name in names}

    @property
    def waiting(self) -> bool:
        """Whether another look or another request may help."""
        return bool(self._short - self._refused.keys())

    def look(self, counts: Mapping[str, int]) -> None:
        """Note the counts that brokers show."""
        self._short = {name for name in self._short if counts[name] < self._targets[name]}

    def take(self, answers: Mapping[str, Any]) -> None:
        """Note the answers to a request."""
        for name, answer in answers.items():
            if not isinstance(answer, KafkaError):
                self._accepted.add(name)
            elif _may_change(answer) or has_code(answer, KafkaError.INVALID_PARTITIONS):
                # Perhaps the request was carried out after all, or another client has grown the topic, or the
                # topic has not grown yet. The next look tells.
                self._last[name] = answer
            else:
                self._refused[name] = answer

    def not_in_time(self) -> RescaleError:
        """Return the error to raise when the time is over and some topics have not grown."""
        left = sorted(self._short)
        reasons = ", ".join(sorted({self._last[name].name() for name in left if name in self._last}))
        return ClusterOutage(
            f"growth of {', '.join(sorted(self._targets))}",
            found=f"{', '.join(left)} not grown ({reasons or 'the change does not show'}){self._grown()}",
            expected="every topic with its target",
            remedy="Run again: what has grown is found and kept, only the rest is asked for.",
        )

    def raise_refused(self) -> None:
        """Raise for the first topic that the brokers refuse to grow."""
        for name, answer in sorted(self._refused.items()):
            error = to_error(answer, f"topic {name!r}")
            raise type(error).of(replace(error.complaint, found=f"{error.found}{self._grown()}"))

    def _grown(self) -> str:
        grown = sorted(self._begun - self._short)
        return f"; {', '.join(grown)} grown" if grown else ""
