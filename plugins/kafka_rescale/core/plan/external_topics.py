"""What an expansion does to topics that the application does not own: its inputs and outputs."""

from __future__ import annotations

from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.values import Value


class Growth(Value):
    """An external topic that is grown in place."""

    topic: str
    current: int
    target: int


class InputPlan(Value):
    """What happens to an input topic at the cutover; ``current == target`` means untouched.

    :param topic: the topic that blue reads.
    :param name: its name in the application file, if that differs from the topic that blue reads.
    :param successor: the topic that green reads instead, if the input is repartitioned.
    :param earlier: the count that blue knows, if the topic was grown by hand since; 0 otherwise.
    """

    topic: str
    policy: InputPolicy
    partitioner: str
    current: int
    target: int
    name: str = ""
    successor: str = ""
    earlier: int = 0

    @property
    def declared(self) -> str:
        """The name in the application file and in the topology."""
        return self.name or self.topic

    @property
    def green_topic(self) -> str:
        """What green reads."""
        return self.successor or self.topic

    @property
    def grows(self) -> bool:
        """Whether the topic itself gets more partitions."""
        return not self.successor and self.target > self.current
