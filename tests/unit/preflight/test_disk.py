"""A disk that is too small for the copies is refused with figures.

Unknown figures are reported, and refuse nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.cluster import Disks, LogDir
from kafka_rescale.core.preflight.disk import disk_messages, disk_space, needs, rooms
from kafka_rescale.core.preflight.situation import Situation

from tests.support.situations import NAME, TOPICS, journal, situation
from tests.support.small_application import application

CHANGELOGS = [f"{NAME}-{store}-changelog" for store in ("customers", "totals", "hourly", "visits")]
INTERNAL = [*CHANGELOGS, f"{NAME}-by-customer-repartition"]
ASSUMED = (
    "Assumed: the whole log of each changelog as it lies on disk, and what is in flight, spread evenly over the "
    "log dirs of {}; nothing is compacted."
)


def log_dir(broker: int, usable: int | None, sizes: dict[str, int] | None = None, **changes: Any) -> LogDir:
    """A log dir that has every partition of these topics in equal parts."""
    parts = {(topic, p): size // 4 for topic, size in (sizes or {}).items() for p in range(4)}
    return LogDir(broker, changes.pop("path", "/data"), 10**12, usable, parts, **changes)


def on(*dirs: LogDir, untold: dict[int, str] | None = None, replicas: int = 1, **changes: Any) -> Situation:
    """The sound application on these disks. Its changelogs have this many replicas."""
    topics = {name: replace(topic, replication_factor=replicas) for name, topic in TOPICS.items()}
    cluster = {"disks": Disks(dirs, untold or {}), "brokers": 3, **changes.pop("cluster", {})}
    return situation(topics=topics, cluster=cluster, **changes)


def refusals(given: Situation) -> list[str]:
    return [str(finding) for finding in disk_space(given)]


def test_it_refuses_with_broker_log_dir_figures_assumption_and_remedy() -> None:
    state = {CHANGELOGS[0]: 8_000_000, CHANGELOGS[1]: 800_000}
    assert refusals(on(log_dir(1, 9_000_000, state))) == [
        "log dir '/data' of broker 1: found 9,000,000 usable bytes (9.0 MB); expected room for 8,800,000 bytes "
        f"of copies (8.8 MB), with 10 % left free. {ASSUMED.format('1 broker')} Free space there, add a disk or "
        "a broker, or lower `min.cleanable.dirty.ratio` of the largest changelogs until they are compacted: "
        "shop-customers-changelog (8.0 MB), shop-totals-changelog (800.0 kB). If it is enough nevertheless, "
        "lower `free_disk_percent:` in the application file; `null` turns this check off."
    ]


@pytest.mark.parametrize(("usable", "is_refused"), [(10_000, False), (9_999, True), (0, True)])
def test_the_margin_is_kept_to_the_byte(usable: int, is_refused: bool) -> None:
    assert bool(refusals(on(log_dir(1, usable, {CHANGELOGS[0]: 9_000})))) is is_refused


@pytest.mark.parametrize(("percent", "is_refused"), [(0, False), (1, True), (None, False)])
def test_the_file_says_how_much_must_stay_free(percent: int | None, is_refused: bool) -> None:
    given = on(log_dir(1, 9_000, {CHANGELOGS[0]: 9_000}))
    given = replace(given, application=application(NAME, free_disk_percent=percent))
    assert bool(refusals(given)) is is_refused
    assert any("9.0 kB of 9.0 kB usable" in line for line in disk_messages(given))


def test_several_brokers_are_one_finding_which_names_the_tightest() -> None:
    state = {CHANGELOGS[0]: 8_000}
    dirs = [log_dir(n, 8_800 - n, state) for n in range(1, 9)]
    (found,) = refusals(on(*dirs, replicas=8))
    assert found.startswith("log dir '/data' of broker 8: found 8,792 usable bytes (8.8 kB), and 7 more: ")
    assert "log dir '/data' of broker 7, " in found
    assert " and 2 more; expected room for 8,000 bytes" in found


def test_each_partition_counts_once_whatever_its_replicas_hold() -> None:
    """A follower may have compacted further than its leader, so the larger log has to be copied."""
    given = on(log_dir(1, 10**9, {CHANGELOGS[0]: 4_000}), log_dir(2, 10**9, {CHANGELOGS[0]: 8_000}), replicas=2)
    (need,) = needs(given)
    assert (need.source_bytes, need.everywhere) == (8_000, 16_000)
    assert [room.needed for room in rooms(given)] == [8_000, 8_000]


def test_what_an_earlier_attempt_has_written_there_is_not_needed_again() -> None:
    there = {CHANGELOGS[0]: 9_000, f"{NAME}-g2-customers-changelog": 8_000}
    assert refusals(on(log_dir(1, 2_000, there))) == []
    assert [room.needed for room in rooms(on(log_dir(1, 2_000, there)))] == [1_000]


def test_a_repartition_topic_counts_as_far_as_it_is_unprocessed() -> None:
    topic = f"{NAME}-by-customer-repartition"
    offsets = {(topic, p): 100 for p in range(4)}
    read = {"ends": offsets, "committed": {at: 75 for at in offsets}}
    assert [n.written for n in needs(on(log_dir(1, 10**9, {topic: 8_000}), cluster=read))] == [2_000]


def test_brokers_place_nothing_on_log_dirs_that_are_cordoned_or_offline() -> None:
    state = {CHANGELOGS[0]: 8_000}
    full = log_dir(1, 10, path="/full", takes_replicas=False)
    assert [str(r) for r in rooms(on(full, log_dir(1, 10**6, state)))] == ["log dir '/data' of broker 1"]
    assert refusals(on(full, log_dir(1, 10**6, state))) == []


def test_the_log_dirs_of_a_broker_share_what_falls_to_it() -> None:
    state = {CHANGELOGS[0]: 8_000}
    given = on(log_dir(1, 10**6, state), log_dir(1, 4_000, path="/small"))
    assert [(str(r), r.needed) for r in rooms(given)] == [
        ("log dir '/small' of broker 1", 4_000),
        ("log dir '/data' of broker 1", 4_000),
    ]
    assert len(refusals(given)) == 1


def test_in_place_the_tombstones_of_what_moves_count_as_well() -> None:
    given = on(log_dir(1, 9_000, {CHANGELOGS[0]: 8_000}))
    given = replace(given, application=application(NAME, mode="in_place"))
    assert [n.written for n in needs(given)] == [8_000]
    assert "in place, the records of keys that move and as many bytes of tombstones" in refusals(on_less(given))[0]


def on_less(given: Situation) -> Situation:
    (only,) = given.cluster.disks.log_dirs
    return replace(given, cluster=replace(given.cluster, disks=Disks((replace(only, usable=8_000),))))


WITHOUT_RIGHT = "the role plan has no Describe on the cluster"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            lambda: on(untold={2: WITHOUT_RIGHT, 1: WITHOUT_RIGHT}),
            f"brokers 1, 2 ({WITHOUT_RIGHT}). `python -m kafka_rescale acls FILE` prints the permission.",
        ),
        (
            lambda: on(log_dir(1, None, dict.fromkeys(INTERNAL, 4))),
            "broker 1 (its version does not tell usable bytes: Kafka 3.3 does, KIP-827).",
        ),
        (
            lambda: on(log_dir(1, 10**6, dict.fromkeys(CHANGELOGS[1:], 4))),
            "the size of shop-by-customer-repartition, the size of shop-customers-changelog.",
        ),
    ],
    ids=["no right", "an older broker", "a topic that no broker tells"],
)
def test_what_is_unknown_is_told_once_and_refuses_nothing(given: Any, told: str) -> None:
    assert refusals(given()) == []
    unknown = [line for line in disk_messages(given()) if "unknown" in line]
    assert [line.removeprefix("Disk: unknown, and not checked: ") for line in unknown] == [told]


def test_an_unknown_broker_takes_its_share_of_the_replicas() -> None:
    given = on(log_dir(1, 10**6, {CHANGELOGS[0]: 8_000}), untold={2: "RequestTimedOutError"})
    assert [room.needed for room in rooms(given)] == [5_000]


def test_it_tells_the_figures_when_everything_fits() -> None:
    lines = list(
        disk_messages(on(log_dir(1, 2**30, dict.fromkeys([*CHANGELOGS, f"{NAME}-by-customer-repartition"], 4096))))
    )
    assert lines == [
        "Disk: at most 16.4 kB are written, replicas included. Most is taken of log dir '/data' of broker 1: "
        f"16.4 kB of 1.1 GB usable. {ASSUMED.format('1 broker')}"
    ]


def test_nothing_is_said_if_nothing_is_copied_or_it_goes_on() -> None:
    dirs = log_dir(1, 10, {CHANGELOGS[0]: 8_000})
    assert list(disk_messages(on(dirs, target=4))) == []
    assert list(disk_messages(on(dirs, control=journal(8)))) == []
