"""The processors of a pipeline follow its inputs: flag, error, timeout and callback of KIP-878, on a broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.control.autoscaling import Autoscaling, Parallelism
from kafka_rescale.core.errors import Fenced, Refused, UnsafeState
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.processing.autoscaling import call_back
from kafka_rescale.operations.processing.processors import expand_processors

from testbed.broker import EmbeddedBroker
from tests.support.processing.growing import Growing
from tests.support.processing.growing_control import both, live_and_control, moved_between, same_results
from tests.support.processing.growing_load import write

pytestmark = pytest.mark.integration

ON = {"partition.autoscaling.enabled": True}
CALLED: list[tuple[Any, ...]] = []


def note(old: int, new: int) -> None:
    """A function that a user could declare."""
    CALLED.append((old, new))


def note_once(old: int, new: int, expansion_id: str) -> None:
    """A function that a user could declare. It can recognize a repeated call."""
    CALLED.append((old, new, expansion_id))


def fails(old: int, new: int) -> None:
    """Fail after the effect."""
    CALLED.append((old, new))
    raise OSError("gone")


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    CALLED.clear()
    return KafkaConnection(broker.client_config())


@pytest.fixture
def grown(connection: KafkaConnection, unique: str, tmp_path: Path) -> tuple[Growing, Growing]:
    """An application of two processors that has processed records.

    Since then, its input has grown to 4 partitions.
    """
    live, control = live_and_control(connection, unique, tmp_path)
    live.inline = control.inline = True
    live.scaling = dict(ON)
    both(live, control, 2, range(200))
    live.run()
    live.admin.grow_topic(live.topic, 4)
    both(live, control, 4, range(200, 300))
    return live, control


def record(live: Growing) -> Autoscaling:
    return live.control.read().autoscaling or Autoscaling()


def partitions(live: Growing) -> int:
    """The number of partitions of the changelog."""
    return live.admin.describe_topics([live.changelog])[live.changelog].partitions


def too_late(*_: object) -> None:
    """Fail as an update does if other controllers kept changing the control topic."""
    raise Fenced("control topic", found="another controller", expected="none", remedy="Run again.")


def run_until(live: Growing, count: int) -> list[str]:
    """Run until there are so many processors, and return what each run said."""
    said: list[str] = []
    while live.counts.count < count:
        assert len(said) < 5, said
        said.append(live.run())
    return said


def test_processors_follow_an_input_that_has_grown_and_it_is_said_once_they_do(
    grown: tuple[Growing, Growing], connection: KafkaConnection
) -> None:
    live, control = grown
    live.scaling["on_partition_expansion"] = f"{__name__}:note"
    said = live.run()
    assert "asked for 4 processors for sub-topology 0, which inputs have grown to" in said
    assert (record(live).target, record(live).grown_from) == (4, 2)
    assert call_back(live.application, connection) == "not yet at 4 processors"
    run_until(live, 4)
    assert call_back(live.application, connection) == f"called {__name__}:note(2, 4)"
    assert call_back(live.application, connection) == "no input has grown since the last call"
    assert [call for call in CALLED] == [(2, 4)]
    assert record(live).inputs == {live.topic: 4}
    both(live, control, 4, range(300, 400))
    live.run()
    control.run()
    same_results(live, control, processors=4)
    assert moved_between(live, {0, 1}) == set()


def test_without_a_callback_the_next_growth_begins_anew(grown: tuple[Growing, Growing]) -> None:
    live, _ = grown
    run_until(live, 4)
    assert (record(live).target, record(live).attempts) == (0, 1)
    live.admin.grow_topic(live.topic, 8)
    write(live.connection, live.topic, 8, range(300, 400))
    run_until(live, 8)
    assert (record(live).target, record(live).attempts) == (0, 2)


def test_of_two_inputs_the_first_is_enough_for_what_lies_behind_and_all_its_records_are_processed(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    live = Growing(connection, unique, tmp_path, inline=True, program="merged_of", scaling=dict(ON))
    live.create()
    other = f"{live.topic}-more"
    live.admin.ensure_topic(other, 2, 1, {})
    write(connection, live.topic, 2, range(100))
    write(connection, other, 2, range(100))
    live.run()
    live.admin.grow_topic(live.topic, 4)
    write(connection, live.topic, 4, range(100, 200))
    write(connection, other, 2, range(100, 200))
    for _ in range(3):
        live.run()
    assert live.control.read().processors.tasks == {0: 2, 1: 4}
    assert sum(map(len, live.outputs().values())) == 400
    with pytest.raises(Refused, match=f"found 4 for 2 partitions of {other}"):
        expand_processors(live.application, connection, 4)


def test_switched_off_nothing_is_added_and_the_run_says_how(grown: tuple[Growing, Growing]) -> None:
    live, _ = grown
    live.scaling = {}
    prepared = live.assign()
    assert "2 processors for 4 partitions; the present processors read all partitions." in str(prepared)
    assert prepared.scaled.parallelism == (Parallelism(0, 2, 4),)
    assert live.counts.expanding_to == 0


def test_switched_off_a_growth_by_hand_is_told_once_it_follows(
    grown: tuple[Growing, Growing], connection: KafkaConnection
) -> None:
    live, control = grown
    live.scaling = {"on_partition_expansion": f"{__name__}:note"}
    live.run()
    assert call_back(live.application, connection) == "not yet at 4 processors"
    expand_processors(live.application, connection, 4)
    run_until(live, 4)
    assert call_back(live.application, connection) == f"called {__name__}:note(2, 4)"
    assert call_back(live.application, connection) == "no input has grown since the last call"
    assert CALLED == [(2, 4)]
    control.run()
    same_results(live, control, processors=4)


def test_switched_off_while_processors_warm_up_the_growth_is_told_all_the_same(
    grown: tuple[Growing, Growing], connection: KafkaConnection
) -> None:
    live, _ = grown
    live.scaling["on_partition_expansion"] = f"{__name__}:note"
    live.assign()
    assert (live.counts.count, live.counts.expanding_to) == (2, 4)
    live.scaling["partition.autoscaling.enabled"] = False
    run_until(live, 4)
    assert call_back(live.application, connection) == f"called {__name__}:note(2, 4)"


def test_a_run_that_ends_between_growing_topics_and_recording_it_is_followed_by_one_that_goes_on(
    grown: tuple[Growing, Growing], monkeypatch: pytest.MonkeyPatch
) -> None:
    live, control = grown
    with monkeypatch.context() as patch:
        patch.setattr("kafka_rescale.operations.processing.autoscaling.update_despite_races", too_late)
        with pytest.raises(Fenced):
            live.run()
    assert (live.counts.count, live.counts.expanding_to, partitions(live)) == (2, 0, 4)
    run_until(live, 4)
    control.run()
    same_results(live, control, processors=4)


def test_a_request_that_ends_between_growing_topics_and_recording_it_stops_no_run_and_may_be_repeated(
    grown: tuple[Growing, Growing], connection: KafkaConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, control = grown
    live.scaling = {}
    with monkeypatch.context() as patch:
        patch.setattr("kafka_rescale.operations.processing.processors.update_despite_races", too_late)
        with pytest.raises(Fenced):
            expand_processors(live.application, connection, 3)
    assert (live.counts.count, live.counts.expanding_to, partitions(live)) == (2, 0, 3)
    live.run()
    control.run()
    same_results(live, control, processors=2)
    expand_processors(live.application, connection, 4)
    run_until(live, 4)
    same_results(live, control, processors=4)
    live.admin.grow_topic(live.changelog, 6)
    with pytest.raises(UnsafeState, match=r"found 6 partitions; expected 4"):
        live.run()


def test_a_growth_that_tears_keys_from_their_state_is_an_error_on_or_off(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    live, _ = live_and_control(connection, unique, tmp_path, linear=False)
    live.inline = True
    write(connection, live.topic, 2, range(50))
    live.run()
    live.admin.grow_topic(live.topic, 4)
    for scaling in ({}, ON):
        live.scaling = dict(scaling)
        with pytest.raises(
            Refused, match=r"\(INCOMPLETE_SOURCE_TOPIC_METADATA\): found 4 partitions instead of 2"
        ):
            live.run()
    assert partitions(live) == 2


@pytest.mark.parametrize("scaling", [{}, ON], ids=["off", "on"])
def test_an_internal_topic_with_too_many_partitions_is_an_error_on_or_off(
    connection: KafkaConnection, unique: str, tmp_path: Path, scaling: dict[str, Any]
) -> None:
    """KIP-878: no topic can shrink, so a person has to act."""
    live, _ = live_and_control(connection, unique, tmp_path)
    live.scaling = dict(scaling)
    write(connection, live.topic, 2, range(50))
    live.run()
    live.admin.grow_topic(live.changelog, 4)
    with pytest.raises(UnsafeState, match=rf"{live.changelog}.*found 4 partitions; expected 2"):
        live.run()


class TestAFailure:
    @pytest.fixture(autouse=True)
    def refused(self, grown: tuple[Growing, Growing], monkeypatch: pytest.MonkeyPatch) -> list[bool]:
        """Whether the brokers refuse to grow topics. At the beginning they do."""
        refuses, grow = [True], ClusterAdmin.grow_topics

        def grow_topics(admin: ClusterAdmin, targets: dict[str, int]) -> dict[str, int]:
            if refuses[0]:
                raise UnsafeState("topic", found="POLICY_VIOLATION", expected="a growth", remedy="Mend it.")
            return grow(admin, targets)

        monkeypatch.setattr(ClusterAdmin, "grow_topics", grow_topics)
        return refuses

    def test_does_not_keep_a_run_from_processing_and_is_tried_again(
        self, grown: tuple[Growing, Growing], refused: list[bool]
    ) -> None:
        live, control = grown
        assert "could not be grown, and the next run tries again: topic: found POLICY_VIOLATION" in live.run()
        first = record(live).first_failure_ms
        assert first > 0
        live.run()
        assert record(live).first_failure_ms == first, "the timeout counts from the first failure on"
        control.run()
        same_results(live, control, processors=2)
        refused[0] = False
        run_until(live, 4)
        assert record(live).failures == 0

    def test_of_which_one_changelog_has_grown_already_leaves_the_run_as_it_was(
        self, grown: tuple[Growing, Growing], refused: list[bool]
    ) -> None:
        live, control = grown
        live.scaling["partition.autoscaling.timeout.ms"] = 0
        live.run()
        assert record(live).first_failure_ms > 0
        refused[0] = False
        live.admin.grow_topic(live.changelog, 3)
        refused[0] = True
        live.run()
        assert not record(live).given_up, "one more partition is a success, which resets the timeout"
        live.run()
        assert (record(live).given_up, record(live).failures) == (True, 1), "nothing has succeeded since"
        control.run()
        assert live.counts.expanding_to == 0
        live.scaling = {}
        for number in (300, 350, 400):
            both(live, control, 4, range(number, number + 50))
            live.run()
            control.run()
            same_results(live, control, processors=2)
        live.scaling = dict(ON)
        refused[0] = False
        run_until(live, 4)
        both(live, control, 4, range(450, 500))
        live.run()
        control.run()
        same_results(live, control, processors=4)

    def test_is_given_up_after_the_timeout_and_counted_once(
        self, grown: tuple[Growing, Growing], refused: list[bool]
    ) -> None:
        live, _ = grown
        live.scaling["partition.autoscaling.timeout.ms"] = 0
        assert "the next run tries again" in live.run()
        prepared = live.assign()
        assert "found POLICY_VIOLATION" in str(prepared), "the run behind the timeout tries once more"
        for again in (prepared, live.assign()):
            assert again.scaled.warns
            assert "gave up growing" in str(again)
        assert record(live).failures == 1
        refused[0] = False
        live.assign()
        assert live.counts.expanding_to == 0, "it asks for nothing more"
        live.admin.grow_topic(live.topic, 8)
        write(live.connection, live.topic, 8, range(300, 400))
        live.assign()
        assert live.counts.expanding_to == 8, "another count is tried anew"

    def test_of_a_request_for_processors_reaches_who_has_asked_and_stops_no_run(
        self, grown: tuple[Growing, Growing], connection: KafkaConnection, refused: list[bool]
    ) -> None:
        live, control = grown
        live.scaling = {}
        with pytest.raises(UnsafeState, match="POLICY_VIOLATION"):
            expand_processors(live.application, connection, 4)
        assert live.counts.expanding_to == 0
        live.run()
        control.run()
        same_results(live, control, processors=2)
        refused[0] = False
        expand_processors(live.application, connection, 4)
        run_until(live, 4)
        same_results(live, control, processors=4)


@pytest.mark.parametrize("name", ["fails", "note_once"])
def test_a_call_that_was_cut_short_is_repeated_only_by_its_token(
    grown: tuple[Growing, Growing], connection: KafkaConnection, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, _ = grown
    live.scaling["on_partition_expansion"] = f"{__name__}:{name}"
    run_until(live, 4)
    if name == "fails":
        with pytest.raises(UnsafeState, match=r"found OSError: gone; expected a call with \(2, 4\) that returns"):
            call_back(live.application, connection)
        with pytest.raises(UnsafeState, match=r"found a call of .*:fails that has begun, and no record"):
            call_back(live.application, connection)
        assert CALLED == [(2, 4)]
        return
    with monkeypatch.context() as patch:
        patch.setattr("kafka_rescale.operations.processing.autoscaling._settled", _killed)
        with pytest.raises(KeyboardInterrupt):
            call_back(live.application, connection)
    call_back(live.application, connection)
    assert [call[:2] for call in CALLED] == [(2, 4), (2, 4)]
    assert len({call[2] for call in CALLED}) == 1


def _killed(*_: object) -> None:
    raise KeyboardInterrupt
