"""A copy that stands still is first reported once. Later it is an outage."""

from __future__ import annotations

from kafka_rescale.kafka.copy.watch import Watch

A, B = ("t", 0), ("t", 1)


def still_after(
    watch: Watch, seconds: float, committed: dict[tuple[str, int], int], end: int = 100
) -> list[object]:
    found: list[object] = []
    for _ in range(round(seconds)):
        watch.passed(1.0)
        found = list(watch.still(committed, dict.fromkeys(committed, end)))
    return found


def test_a_partition_that_stands_still_is_named_however_far_others_come() -> None:
    watch = Watch(10.0)
    for at in range(11):
        watch.passed(1.0)
        found = watch.still({A: at, B: 5}, {A: 100, B: 100})
        assert found == []
    watch.passed(1.0)
    assert watch.still({A: 11, B: 5}, {A: 100, B: 100}) == [B]


def test_a_partition_without_anything_to_read_does_not_stand_still() -> None:
    watch = Watch(10.0)
    for _ in range(30):
        watch.passed(1.0)
        assert watch.still({A: 5}, {}) == []
    assert still_after(watch, 10, {A: 5}) == []
    assert still_after(watch, 2, {A: 5}) == [A]


def test_what_another_client_could_not_read_either_is_counted_anew() -> None:
    watch = Watch(10.0)
    assert still_after(watch, 12, {A: 5}) == [A]
    watch.heard([A])
    assert still_after(watch, 10, {A: 5}) == []


def test_a_process_that_was_suspended_looks_again_first() -> None:
    watch = Watch(10.0)
    assert still_after(watch, 1, {A: 5}) == []
    watch.passed(3600.0)
    assert watch.still({A: 5}, {A: 100}) == []


def test_clients_are_replaced_once_and_again_only_after_the_copy_has_moved() -> None:
    watch = Watch(10.0)
    assert watch.tell([A, B])
    assert not watch.tell([A])
    watch.moved([A])
    assert watch.tell([A])
    assert not watch.tell([B])
