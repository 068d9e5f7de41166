"""Green has started when its group has members. What others write to its output topics is no sign of it."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.operations.cutover import first_output
from kafka_rescale.operations.cutover.first_output import watch_first_output

from tests.support.plans import in_place_application, in_place_plan

PLAN, APPLICATION = in_place_plan(), in_place_application()
INTERNAL: PartitionOffsets = {move.target: {0: 1} for move in PLAN.moves}
BEFORE: PartitionOffsets = {output.topic: {0: 5} for output in APPLICATION.outputs}
GROWN: PartitionOffsets = {output.topic: {0: 6} for output in APPLICATION.outputs}


class Green:
    """An application whose group gets a member when it is revived.

    :param outputs: ends of the output topics, one after the other. The last ones stay.
    """

    def __init__(self, outputs: list[PartitionOffsets], *, joins: bool) -> None:
        self._outputs, self._joins = iter(outputs), joins
        self._last: PartitionOffsets = {}
        self.is_live, self.revived = False, 0

    @property
    def rescale(self) -> Any:
        """A ``Rescale`` over it."""
        admin = SimpleNamespace(end_offsets=self._ends, describe_group=self._group)
        return SimpleNamespace(admin=admin, application=APPLICATION)

    def revive(self) -> None:
        """Start it again."""
        self.revived += 1
        self.is_live = self._joins

    def _ends(self, topics: Any, **named: Any) -> PartitionOffsets:
        if named.get("if_present"):
            self._last = next(self._outputs, self._last)
            return self._last
        return {topic: INTERNAL.get(topic, {0: 9}) for topic in topics}

    def _group(self, group: str) -> GroupDescription:
        return GroupDescription(group, "Stable", ("a member",) if self.is_live else ())


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Time passes only while somebody sleeps."""
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.append(now.pop() + seconds))
    monkeypatch.setattr(first_output, "time", clock)
    return iter(())


def watched(green: Green, before: PartitionOffsets) -> dict[str, float]:
    journal = Journal(
        plan=PLAN,
        phase=Phase.PROMOTED,
        owner="test",
        green_ends=INTERNAL,
        green_start={**{i.green_topic: {0: 3} for i in PLAN.inputs}, **INTERNAL},
    )
    return watch_first_output(green.rescale, journal, before, green.revive)


def test_output_of_others_does_not_stand_for_a_green_that_is_not_there() -> None:
    green = Green([GROWN], joins=False)
    assert watched(green, BEFORE).keys() == {"watched_in_vain"}
    assert green.revived > 100


def test_the_parts_are_measured_from_the_moment_at_which_green_is_there() -> None:
    green = Green([BEFORE, GROWN], joins=True)
    assert watched(green, BEFORE) == {"joined": 0.1, "restore": 0.1, "first_output": 0.0}
    assert green.revived == 1


def test_a_topic_that_a_broker_had_not_known_before_is_no_output() -> None:
    assert "first_output" not in watched(Green([GROWN], joins=True), {"another": {0: 1}})
