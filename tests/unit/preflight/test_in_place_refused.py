"""What mode in_place refuses: the message, and what would happen without the refusal."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.application.checks.declaration import check_declaration
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.generations import Generations, promoted_generations
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Refused, UnsafeState
from kafka_rescale.core.formats.changelog_formats import FORMATS, NOT_IN_PLACE, Content
from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.core.formats.subscription_wrapper import parse
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.preflight.check import check
from kafka_rescale.core.preflight.in_place import grown_by_hand_in_place
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.kafka.copy import reset as copy_reset
from kafka_rescale.kafka.copy.marks import Mark
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.retire import retire

from tests.support import situations
from tests.support.situations import INPUTS, NAME, RUNNING, SET_BY_PROGRAM, samples
from tests.support.small_application import START_MS, application, declared

STORES = declared(NAME)["stores"]
SHELL = declared(NAME)["lifecycle"]


def situation(target: int = 8, **changes: Any) -> Situation:
    """A sound application in this mode. ``fields`` are fields of its file."""
    fields = {"mode": "in_place", **changes.pop("fields", {})}
    return replace(situations.situation(target, **changes), application=application(NAME, **fields))


def found(given: Situation) -> list[str]:
    return [str(finding) for finding in check(given)]


def mistakes(**changes: Any) -> list[str]:
    given = application(NAME, mode="in_place", **changes)
    return [str(m.complaint) for m in check_declaration(given, topology_of(given))]


def test_a_sound_application_may_grow_in_place_to_any_higher_count() -> None:
    assert mistakes() == []
    for target in (8, 6, 5, 100):
        assert found(situation(target)) == []
        assert {(m.source == m.target, m.target_partitions) for m in situation(target).plan.moves} == {
            (True, target)
        }
    assert found(situation(fields={"inputs": [{**i, "policy": "fixed"} for i in INPUTS]}, target=4)) == []


def test_a_stopped_application_is_taken_as_well() -> None:
    assert found(situation(group=GroupDescription(NAME, "Empty"))) == []


@pytest.mark.parametrize("store_type", sorted(NOT_IN_PLACE))
def test_a_store_that_a_tombstone_does_not_clean_is_refused(store_type: str) -> None:
    told = mistakes(stores=[{**STORES[0], "type": store_type}, *STORES[1:]])
    assert len(told) == 1
    assert told[0].startswith(
        f"stores[0].type: found the {store_type} store customers, {NOT_IN_PLACE[store_type]}; "
    )
    assert told[0].endswith("Declare `mode: blue_green`, which builds the next generation beside the running one.")


def test_every_other_store_type_is_taken() -> None:
    for store_type in FORMATS.keys() - NOT_IN_PLACE.keys():
        extractor = {"partitioning_key": "drop-last-4"} if store_type == "processor" else {}
        assert mistakes(stores=[{**STORES[0], "type": store_type, **extractor}, *STORES[1:]]) == []


def test_a_deleted_version_stays_a_version() -> None:
    assert FORMATS["versioned"].has(Content.VERSIONS)


def test_a_log_of_join_windows_keeps_what_a_tombstone_is_about() -> None:
    assert ("delete",) in FORMATS["join-window"].cleanup_policies


def test_a_subscription_that_stays_would_name_a_partition_of_the_old_count() -> None:
    """The foreign key may keep its partition while the primary key moves."""
    rule = partitioner_named("murmur2")
    primary = next(k for k in (b"pk-%d" % n for n in range(99)) if rule.partition(k, 4) != rule.partition(k, 8))
    stays = parse(b"\x81\x02" + primary + rule.partition(primary, 4).to_bytes(4, "big"))
    assert stays is not None
    assert stays.primary_partition != rule.partition(stays.primary_key, 8)


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "a repartitioned input": (
        {
            "inputs": [INPUTS[0], {**INPUTS[1], "policy": "repartitioned", "isolation_level": "read_committed"}],
            "lifecycle": {**SHELL, "start": "run {input:shop-customers}"},
        },
        "inputs[1].policy: found repartitioned for shop-customers with mode in_place; expected unkeyed, paused or "
        "fixed: in place, inputs grow as the other topics do. Declare `policy: paused`, or `mode: blue_green` if "
        "the producers can't be held.",
    ),
    "other names": (
        {"green_names": {"totals": "sums"}},
        "green_names: found green_names with mode in_place; expected the names that the topics have: they are "
        "kept. Delete them; for a program with other names declare `mode: blue_green`.",
    ),
    "pre-warming": (
        {"lifecycle": {**SHELL, "start_gated": "true"}},
        "lifecycle.start_gated: found start_gated with mode in_place; expected none: tasks keep their local "
        "state, so there is nothing to pre-warm. Delete it, or declare `mode: blue_green`.",
    ),
}


@pytest.mark.parametrize(("changes", "message"), CASES.values(), ids=CASES)
def test_what_the_file_must_not_ask_for(changes: dict[str, Any], message: str) -> None:
    assert mistakes(**changes) == [message]


def test_a_table_whose_input_is_its_changelog_is_refused() -> None:
    fixed = [{**i, "policy": "fixed"} for i in INPUTS]
    (told,) = mistakes(inputs=fixed, stores=[{**STORES[0], "changelog": "source"}, *STORES[1:]])
    assert told.startswith(
        "stores[0].changelog: found the table customers, whose input serves as its changelog, with"
    )


def test_fewer_partitions_are_refused() -> None:
    fixed = [{**i, "policy": "fixed"} for i in INPUTS[:1]]
    fields = {"inputs": fixed, "stores": STORES[1:], "outputs": [], "repartitions": SET_BY_PROGRAM}
    unjoined = replace(
        situation(2),
        application=application(NAME, mode="in_place", **fields),
        topology=_without_customers(),
    )
    assert found(unjoined)[0] == (
        "topic 'shop-totals-changelog': found 4 partitions with mode in_place; expected at most 2: a topic can't "
        "lose partitions. Declare `mode: blue_green`, whose next generation has topics of its own."
    )
    shrinking = found(situation(2))
    assert len(shrinking) == 2
    assert all("a topic can't lose partitions. Declare `mode: blue_green`" in text for text in shrinking)


def _without_customers() -> Any:
    topology = situation(2).topology
    first, second = topology.subtopologies
    kept = replace(second, sources=("by-customer-repartition",), stores=("totals", "hourly", "visits"), sinks=())
    return replace(topology, subtopologies=(first, kept))


def test_an_input_that_was_grown_by_hand_is_refused() -> None:
    given = situation(8, topics=situations.with_counts(customers=8))
    (told,) = map(str, grown_by_hand_in_place(given))
    assert told in found(given)
    assert told == (
        "input topic 'shop-customers': found 8 partitions, while shop is tied to 4; expected the count that the "
        "application knows, with mode in_place. Declare `mode: blue_green`, which goes on from where the "
        "application stopped."
    )


def test_a_group_of_the_streams_protocol_is_refused() -> None:
    (told,) = found(situation(group=replace(RUNNING, protocol="streams")))
    assert "the streams protocol (KIP-1071) with mode in_place" in told


@pytest.mark.parametrize(
    ("phase", "way_on"),
    [
        (Phase.WARMING, "or roll it back; then ask again."),
        (Phase.PROMOTED, "then ask again: after its promotion it can't be rolled back."),
    ],
)
@pytest.mark.parametrize(("begun", "declared_now"), [("in_place", "blue_green"), ("blue_green", "in_place")])
def test_an_expansion_is_finished_in_the_mode_that_it_was_begun_with(
    begun: str, declared_now: str, phase: Phase, way_on: str
) -> None:
    plan = situation(fields={"mode": begun}).plan
    control = ControlState(journal=Journal(plan=plan, phase=phase))
    (told,) = found(situation(fields={"mode": declared_now}, control=control))
    assert f"an expansion in progress that was begun with mode {begun} (phase {phase})" in told
    assert f"Declare `mode: {begun}`. Finish it by a run with target" in told
    assert told.endswith(way_on)
    assert found(situation(fields={"mode": begun}, control=control)) == []


class TestLeftBehind:
    """A changelog that grew from 2 to 4 in place still has records of keys that moved then."""

    TOPIC = f"{NAME}-totals-changelog"

    def given(self, grown_from: dict[str, tuple[int, ...]]) -> Situation:
        old = [
            Sample(self.TOPIC, partitioner_named("murmur2").partition(key, 2), offset, key, START_MS)
            for offset, key in enumerate(s.key for s in samples() if s.topic == self.TOPIC and s.key)
        ]
        generations = Generations(running=NAME, generation=2, partitions=4, grown_from=grown_from)
        return situation(samples=samples(**{self.TOPIC: old}), control=ControlState(generations=generations))

    def test_it_is_known_for_what_it_is(self) -> None:
        assert found(self.given({self.TOPIC: (2,)})) == []

    def test_in_any_other_topic_it_would_be_misplaced(self) -> None:
        (told,) = found(self.given({}))
        assert "sampled records elsewhere" in told


def test_nothing_is_retired_after_a_growth_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The topics and group of the previous generation are those of the running generation."""
    plan = situation().plan
    complete = ControlState(
        journal=Journal(plan=plan, phase=Phase.COMPLETE), generations=promoted_generations(Journal(plan=plan))
    )
    admin = SimpleNamespace(list_topics=lambda: {m.source for m in plan.moves})
    read_only = SimpleNamespace(control=SimpleNamespace(read=lambda: complete), admin=admin)
    monkeypatch.setattr(Rescale, "open", lambda *_: read_only)
    nobody: Any = None
    with pytest.raises(Refused, match="Nothing has to be deleted, and nothing was deleted"):
        retire(application(NAME), nobody, owner="test")


def test_a_topic_that_is_its_own_source_is_never_emptied() -> None:
    nobody: Any = None
    for move in situation().plan.moves:
        with pytest.raises(UnsafeState, match="which a copy wants to empty"):
            copy_reset.restart(nobody, situation().plan, move, Mark())
        with pytest.raises(UnsafeState, match="which a copy wants to empty"):
            copy_reset.empty(nobody, move, {}, nobody)
