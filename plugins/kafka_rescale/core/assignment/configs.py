"""The configs of Kafka Streams that decide an assignment, with the defaults and limits of Kafka Streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from kafka_rescale.core.errors import InvalidInput

CLIENT_TAG = "client.tag."
RACK_AWARE_TAGS = "rack.aware.assignment.tags"
RACK = "rack"
"""Key of the tag that stands for a client's rack."""
MOST_TAGS = 5
LONGEST_TAG_KEY = 20
LONGEST_TAG_VALUE = 30
_AT_LEAST = {
    "acceptable.recovery.lag": 0,
    "max.warmup.replicas": 1,
    "num.standby.replicas": 0,
    "probing.rebalance.interval.ms": 60_000,
}


@dataclass(frozen=True)
class AssignmentConfigs:
    """The configs of KIP-441 and KIP-708, under the names of ``StreamsConfig``.

    :param acceptable_recovery_lag: number of records that a caught-up client may be behind.
    :param max_warmup_replicas: number of warm-ups at a time. Standbys do not count.
    :param num_standby_replicas: number of standbys of each stateful task.
    :param probing_rebalance_interval_ms: time until a rebalance looks again whether the warm-ups have caught up.
    :param rack_aware_assignment_tags: the tags in which the copies of a task shall differ.
    :raises InvalidInput: a value is outside its range.
    """

    acceptable_recovery_lag: int = 10_000
    max_warmup_replicas: int = 2
    num_standby_replicas: int = 0
    probing_rebalance_interval_ms: int = 600_000
    rack_aware_assignment_tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, least in _AT_LEAST.items():
            value = getattr(self, name.replace(".", "_"))
            if value < least:
                raise _invalid(name, str(value), f"at least {least}")
        if len(self.rack_aware_assignment_tags) > MOST_TAGS:
            raise _invalid(RACK_AWARE_TAGS, f"{len(self.rack_aware_assignment_tags)} tags", f"at most {MOST_TAGS}")

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self:
        """Return the configs that a client's properties set. Other properties of the client don't matter here.

        :raises InvalidInput: a value isn't a number or is outside its range.
        """
        numbers = {
            name.replace(".", "_"): _number(name, properties[name]) for name in _AT_LEAST if name in properties
        }
        tags = tuple(tag.strip() for tag in properties.get(RACK_AWARE_TAGS, "").split(",") if tag.strip())
        return cls(rack_aware_assignment_tags=tags, **numbers)


def client_tags(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the tags that a client's properties set by ``client.tag.<key>``.

    :raises InvalidInput: there are too many tags, a key or a value is too long, or the client lacks a tag of
        ``rack.aware.assignment.tags`` (``StreamsConfig#validateRackAwarenessConfiguration``).
    """
    tags = {
        name.removeprefix(CLIENT_TAG): value for name, value in properties.items() if name.startswith(CLIENT_TAG)
    }
    if len(tags) > MOST_TAGS:
        raise _invalid(CLIENT_TAG + "*", f"{len(tags)} tags", f"at most {MOST_TAGS}")
    for tag in AssignmentConfigs.of(properties).rack_aware_assignment_tags:
        if tag not in tags:
            raise _invalid(RACK_AWARE_TAGS, f"{tag!r} without a value", f"{CLIENT_TAG}{tag} on every client")
    for key, value in tags.items():
        if len(key) > LONGEST_TAG_KEY:
            raise _invalid(
                CLIENT_TAG + key, f"a key of {len(key)} characters", f"at most {LONGEST_TAG_KEY} characters"
            )
        if len(value) > LONGEST_TAG_VALUE:
            raise _invalid(
                CLIENT_TAG + key, f"a value of {len(value)} characters", f"at most {LONGEST_TAG_VALUE} characters"
            )
    return tags


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _invalid(name, repr(text), "a whole number") from None


def _invalid(name: str, found: str, expected: str) -> InvalidInput:
    return InvalidInput(f"config {name}", found=found, expected=expected, remedy="Correct the client's config.")
