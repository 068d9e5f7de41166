"""What a file may say about stores that the program does not log, and where they stand in its topology."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.application.checks.declaration import check_declaration
from kafka_rescale.core.application.generation_names import blue_names
from kafka_rescale.core.errors import InvalidApplication
from kafka_rescale.core.snapshots.day import SnapshotDay
from kafka_rescale.core.snapshots.request import request_of
from kafka_rescale.operations.application.load import load_application, topology_of

from tests.support.small_application import application, declared, write

NAME = "shop"
FIELDS = declared(NAME)
STORES = [{"name": "visits", "changelog": "none"} if s["name"] == "visits" else s for s in FIELDS["stores"]]


def mistakes(**changes: Any) -> list[str]:
    given = application(NAME, **{"stores": STORES, **changes})
    return [str(m.complaint) for m in check_declaration(given, topology_of(given))]


def test_it_is_state_but_has_no_topic() -> None:
    assert mistakes() == []
    given = application(NAME, stores=STORES)
    topology = topology_of(given)
    assert topology.subtopologies[1].unlogged == ("visits",)
    assert topology.stores == ("customers", "totals", "hourly")
    assert "shop-visits-changelog" not in blue_names(given, NAME).all_of(topology)
    assert [s.name for s in given.logged_stores] == ["customers", "totals", "hourly"]


def test_keys_decide_where_it_is_even_if_it_is_the_only_state() -> None:
    stores = [{"name": s["name"], "changelog": "none"} for s in FIELDS["stores"]]
    assert mistakes(stores=stores) == []
    topology = topology_of(application(NAME, stores=stores))
    assert topology.stores == ()
    assert topology.subtopologies[1].is_stateful
    orders, customers = FIELDS["inputs"]
    (told,) = mistakes(stores=stores, inputs=[orders, {**customers, "policy": "unkeyed"}])
    assert "unkeyed, while sub-topology 1 reads shop-customers and keeps customers, totals, hourly, visits" in told


@pytest.mark.parametrize(
    ("field", "value"), [("type", "session"), ("partitioning_key", "whole"), ("partitioner", "crc32")]
)
def test_nothing_is_said_about_records_that_there_are_not(field: str, value: str, tmp_path: Path) -> None:
    file = write(tmp_path, NAME, stores=[*STORES[:3], {**STORES[3], field: value}])
    with pytest.raises(InvalidApplication) as refused:
        load_application(file)
    assert (
        f"stores[3].{field}: found '{value}' for a store with `changelog: none`; expected no other field than "
        "`name` and `changelog`: nothing of such a store is copied. Delete it; if the program logs the store, "
        "delete `changelog: none` instead."
    ) in str(refused.value)


def test_every_other_store_needs_its_type(tmp_path: Path) -> None:
    for changelog in ({}, {"changelog": "own"}, {"changelog": "source"}):
        file = write(tmp_path, NAME, stores=[*STORES[:3], {"name": "visits", **changelog}])
        with pytest.raises(InvalidApplication, match=r"stores\[3\]\.type: found nothing; expected the type"):
            load_application(file)


def test_in_place_its_keys_would_stay_on_the_disks_that_they_move_from() -> None:
    assert mistakes(mode="in_place") == [
        "stores[3].changelog: found the store visits, which has no changelog, with mode in_place; expected stores "
        "with changelogs: tasks keep their local state, and only a tombstone in a changelog cleans it of the keys "
        "that move. Declare `mode: blue_green`, whose next generation begins without local state."
    ]


def test_it_may_have_any_name_in_the_next_generation() -> None:
    assert mistakes(green_names={"visits": "visitors"}) == [
        "green_names.visits: found visits, a store without a changelog of its own; expected stores and "
        "repartitions whose topics are copied. Delete it: no topic has its name, so it may have another one in "
        "the next generation."
    ]


def test_no_snapshot_is_made_of_it() -> None:
    snapshots = {"location": "/snapshots", "stores": [{"name": "totals", "value": "long"}]}
    assert mistakes(snapshots=snapshots) == []
    given = application(NAME, stores=STORES, snapshots=snapshots)
    request = request_of(given, topology_of(given), SnapshotDay.named("2026-11-27"))
    assert [s.name for s in request.stores] == ["customers", "totals", "hourly"]
    assert mistakes(snapshots={**snapshots, "stores": [{"name": "visits"}]}) == [
        "snapshots.stores[0].name: found the store visits, which has no changelog; expected stores with a "
        "changelog: snapshots are made of them. Delete it."
    ]
