"""The comparison of outer joins leaves out what depends on the order of partitions, and nothing else."""

from __future__ import annotations

from tests.support.store_contents import differences, settled

RESULTS = {b"k": [b"a+1", b"a+2", b"b+null", b"null+3"]}


def test_a_record_that_was_called_lonely_too_early_makes_no_difference() -> None:
    early = {b"k": [b"a+1", b"a+2", b"a+null", b"b+null", b"null+2", b"null+3"]}
    assert differences(settled(RESULTS), settled(early)) == []


def test_any_other_result_that_is_lost_or_doubled_does() -> None:
    for at in range(4):
        lost = {b"k": RESULTS[b"k"][:at] + RESULTS[b"k"][at + 1 :]}
        doubled = {b"k": [*RESULTS[b"k"], RESULTS[b"k"][at]]}
        for found in (lost, doubled):
            assert differences(settled(RESULTS), settled(found)), found
