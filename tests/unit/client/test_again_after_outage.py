"""What begins again after the cluster was away for a while, and how often."""

from __future__ import annotations

import pytest
from kafka_rescale.core.errors import ClusterOutage, Outage
from kafka_rescale.kafka.client.waiting import again_after_outage


def test_an_outage_of_the_cluster_is_waited_out() -> None:
    answers: list[Exception | None] = [outage(ClusterOutage), outage(ClusterOutage), None]

    def action() -> int:
        if (error := answers.pop(0)) is not None:
            raise error
        return 7

    assert again_after_outage(action) == 7


@pytest.mark.parametrize(("kind", "begun"), [(ClusterOutage, 3), (Outage, 1)])
def test_what_goes_on_failing_or_is_of_another_kind_is_raised(kind: type[Outage], begun: int) -> None:
    calls: list[int] = []

    def action() -> None:
        calls.append(1)
        raise outage(kind)

    with pytest.raises(kind):
        again_after_outage(action)
    assert len(calls) == begun


def test_an_outage_after_long_work_is_not_counted_with_those_before() -> None:
    calls: list[int] = []

    def action() -> int:
        calls.append(1)
        if len(calls) > 9:
            return 7
        raise outage(ClusterOutage)

    assert again_after_outage(action, steady_seconds=-1) == 7
    assert len(calls) == 10


def outage(kind: type[Outage]) -> Outage:
    return kind("brokers", found="nothing", expected="an answer", remedy="Wait.")
