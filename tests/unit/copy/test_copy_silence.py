"""When the silence of a partition counts as an outage."""

from __future__ import annotations

import pytest
from kafka_rescale.core.errors import Outage
from kafka_rescale.kafka.copy.silence import Silence

A, B = ("t", 0), ("t", 1)


def test_one_that_is_silent_is_named_however_much_others_say() -> None:
    silence = Silence([A, B], 10.0)
    for _ in range(10):
        silence.listened(1.0, [A])
        silence.check()
    silence.listened(1.0, [A])
    with pytest.raises(Outage, match="copy of t-1: found neither records nor an end for 10 s"):
        silence.check()


def test_what_was_heard_by_asking_counts_and_begins_anew() -> None:
    silence = Silence([A, B], 10.0)
    silence.listened(9.0, [])
    silence.heard([A])
    silence.listened(9.0, [])
    with pytest.raises(Outage, match="copy of t-1: "):
        silence.check()
    silence.heard()
    silence.check()
