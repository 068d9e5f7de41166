"""Which generation is read, and what the request of the job says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.bridge import Bridge, ReplacedBridges
from kafka_rescale.core.control.generations import Generations, promoted_generations
from kafka_rescale.core.control.journal import Captured, Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import InvalidApplication, InvalidInput, Refused
from kafka_rescale.core.formats.serdes import serde_named
from kafka_rescale.core.snapshots.day import SnapshotDay
from kafka_rescale.core.snapshots.request import SnapshotRequest, request_of
from kafka_rescale.core.snapshots.source import source_at
from kafka_rescale.operations.application.load import load_application, topology_of
from kafka_rescale.operations.expansion.compaction import KEEP_ALL
from kafka_rescale.spark.snapshots.refusals import damaged

from tests.support.application_files import write_application
from tests.support.plans import in_place_plan
from tests.unit.plan.test_repartitioned import plan as repartitioned_plan

NAME = "orders-app"
DAY = SnapshotDay.named("2026-01-05")
HOUR_MS = 3_600_000


def promoted(paused_ms: int, before: Generations | None = None, **changes: Any) -> Generations:
    """Return the generations after an expansion whose pause began at a time."""
    generation = (before.generation if before else 1) + 1
    blue = before.running if before else NAME
    plan = in_place_plan(4, 8, generation=generation).model_copy(
        update={"blue": blue, "green": f"{NAME}-g{generation}", **changes.pop("plan", {})}
    )
    return promoted_generations(Journal(plan=plan, pause_started_ms=paused_ms, **changes), before)


class TestGeneration:
    def test_an_application_that_was_never_expanded_has_one(self) -> None:
        assert source_at(ControlState(), NAME, DAY).generation == NAME

    def test_before_the_pause_it_is_the_old_one_and_from_then_on_the_new_one(self) -> None:
        for paused_ms, expected in ((DAY.end_ms + 1, NAME), (DAY.end_ms, f"{NAME}-g2")):
            source = source_at(ControlState(generations=promoted(paused_ms)), NAME, DAY)
            assert (source.generation, source.is_running) == (expected, expected != NAME)

    def test_until_the_promotion_the_old_one_is_running(self) -> None:
        journal = Journal(plan=in_place_plan(4, 8), phase=Phase.QUIESCED, pause_started_ms=DAY.end_ms)
        assert source_at(ControlState(journal=journal), NAME, DAY).is_running

    def test_days_are_told_by_the_generation_of_their_time(self) -> None:
        first = promoted(DAY.minus(2).end_ms + HOUR_MS)
        state = ControlState(generations=promoted(DAY.minus(1).end_ms + HOUR_MS, first))
        found = [source_at(state, NAME, DAY.minus(n)).generation for n in (3, 2, 1, 0)]
        assert found == [NAME, NAME, f"{NAME}-g2", f"{NAME}-g3"]

    def test_where_it_stopped_reading_is_known(self) -> None:
        captured = Captured(committed={"orders": {0: 7}})
        state = ControlState(generations=promoted(DAY.end_ms + 1, captured=captured))
        assert source_at(state, NAME, DAY).stopped_at == {"orders": {0: 7}}

    def test_what_it_left_between_its_sub_topologies_is_known(self) -> None:
        """In place, the successor has deleted these records by then."""
        captured = Captured(committed={"orders": {0: 7}}, in_flight={"orders-app-by-x-repartition": {0: (3, 5)}})
        state = ControlState(generations=promoted(DAY.end_ms + 1, captured=captured))
        found = source_at(state, NAME, DAY).stopped_at
        assert found == {"orders": {0: 7}, "orders-app-by-x-repartition": {0: 3}}
        in_place = promoted(DAY.end_ms + 1, captured=captured, plan={"green": NAME})
        assert source_at(ControlState(generations=in_place), NAME, DAY).stopped_at == {"orders": {0: 7}}

    def test_what_grew_in_place_ends_where_it_was_stopped(self) -> None:
        captured = Captured(changelog_ends={"orders-app-totals-changelog": {0: 7}})
        in_place = promoted(DAY.end_ms + 1, captured=captured, plan={"green": NAME})
        found = source_at(ControlState(generations=in_place), NAME, DAY)
        assert (found.ends, found.until_ms) == (captured.changelog_ends, DAY.end_ms + 1)

    def test_a_promotion_of_before_that_was_recorded_is_told_by_the_journal(self) -> None:
        journal = Journal(plan=in_place_plan(4, 8), phase=Phase.COMPLETE, pause_started_ms=DAY.end_ms - 5)
        known = Generations(running=journal.plan.green, generation=2)
        assert source_at(ControlState(generations=known, journal=journal), NAME, DAY).is_running
        with pytest.raises(Refused, match=f"The first exact day is {DAY}"):
            source_at(ControlState(generations=known, journal=journal), NAME, DAY.minus(1))

    def test_a_generation_of_unknown_age_is_refused(self) -> None:
        with pytest.raises(Refused, match="since an unknown time"):
            source_at(ControlState(generations=Generations(running="x", generation=4)), NAME, DAY)


class TestBridged:
    def test_what_a_bridge_carries_on_to_the_running_one_is_known(self) -> None:
        plan = repartitioned_plan(4, 8)
        running = Generations(running=plan.green, generation=2, since_ms=1, inputs={"orders": "orders-p8"})
        journal = Journal(plan=plan, phase=Phase.STARTED, pause_started_ms=1)
        source = source_at(ControlState(generations=running, journal=journal), NAME, DAY)
        assert (source.bridged, source.bridge_group) == (("orders",), plan.bridge_group)
        # Another expansion has begun. This was only possible because the bridge of the previous one had ended.
        later = journal.model_copy(update={"plan": plan.model_copy(update={"green": "ordered-g3"})})
        assert source_at(ControlState(generations=running, journal=later), NAME, DAY).bridged == ()
        # It was rolled back: the bridge of the running generation may have late records again.
        complete = journal.model_copy(update={"phase": Phase.COMPLETE})
        back = later.model_copy(update={"phase": Phase.ROLLED_BACK})
        state = ControlState(generations=running, journal=back, replaced=ReplacedBridges.of(complete, None))
        assert source_at(state, NAME, DAY).bridged == ("orders",)

    def test_the_ends_of_a_bridge_that_has_ended_are_known_without_its_group(self) -> None:
        plan, ends = repartitioned_plan(4, 8), {"orders": dict.fromkeys(range(4), 9)}
        running = Generations(running=plan.green, generation=2, since_ms=1, inputs={"orders": "orders-p8"})
        bridge = Bridge(plan=plan.fingerprint, begun=True, ends=ends)
        journal = Journal(plan=plan, phase=Phase.COMPLETE, pause_started_ms=1)
        for ended_at_ms, carried in ((5, ends), (0, {})):
            found = bridge.model_copy(update={"ended_at_ms": ended_at_ms})
            state = ControlState(generations=running, journal=journal, bridge=found)
            assert source_at(state, NAME, DAY).carried == carried
            made_anew = found.model_copy(update={"ids": dict.fromkeys(ends, "first")})
            state = state.model_copy(update={"bridge": made_anew})
            assert source_at(state, NAME, DAY, dict.fromkeys(ends, "second")).carried == {}

    def test_there_is_none_without_such_an_input(self) -> None:
        plan = in_place_plan(4, 8)
        running = Generations(running=plan.green, generation=2, since_ms=1)
        state = ControlState(generations=running, journal=Journal(plan=plan, phase=Phase.COMPLETE))
        assert source_at(state, NAME, DAY).bridged == ()


class TestRequest:
    def test_it_carries_what_the_job_needs_and_nothing_of_the_lifecycle(self, tmp_path: Path) -> None:
        request = self.request(
            tmp_path, {"location": "/snapshots", "stores": [{"name": "per-region", "key": "string"}]}
        )
        assert [(s.name, s.key) for s in request.stores] == [("per-customer", ""), ("per-region", "string")]
        assert request.repartitions == ("by-customer-repartition", "by-region-repartition")
        assert (request.inputs, request.grace_ms) == (("orders",), HOUR_MS)
        assert "true" not in request.model_dump_json(exclude={"from_scratch"})
        assert SnapshotRequest.model_validate_json(request.model_dump_json()) == request
        assert request.names(f"{NAME}-g2").changelog("per-region") == f"{NAME}-g2-per-region-changelog"

    def test_a_prefix_of_the_users_is_part_of_the_names(self, tmp_path: Path) -> None:
        request = self.request(tmp_path, {"location": "/s"}).model_copy(update={"internal_topic_prefix": "shared"})
        assert request.names(f"{NAME}-g2").changelog("x") == "shared-g2-x-changelog"

    def test_who_says_since_when_changelogs_keep_their_records_has_more_days(self, tmp_path: Path) -> None:
        now_ms, hours = DAY.end_ms + 100 * HOUR_MS, str(48 * HOUR_MS)
        changelog = TopicDescription("c", 1, 1, configs={"min.compaction.lag.ms": hours})
        assert self.request(tmp_path, {"location": "/s"}).lagging_ms(changelog, now_ms) is None
        request = self.request(tmp_path, {"location": "/s", "compaction_lag_since": str(DAY)})
        assert request.lagging_ms(changelog, now_ms) == now_ms - 48 * HOUR_MS
        assert request.lagging_ms(changelog, DAY.end_ms) == DAY.minus(1).end_ms

    def test_a_lag_that_an_expansion_holds_says_nothing_of_earlier_days(self, tmp_path: Path) -> None:
        request = self.request(tmp_path, {"location": "/s", "compaction_lag_since": str(DAY)})
        held = TopicDescription("c", 1, 1, configs={"min.compaction.lag.ms": KEEP_ALL})
        assert request.lagging_ms(held, DAY.end_ms + HOUR_MS) is None

    def test_a_refusal_names_the_first_exact_day_if_one_is_known(self, tmp_path: Path) -> None:
        request = self.request(tmp_path, {"location": "/s"})
        for moments, remedy in (
            ([0, DAY.end_ms], f"The first exact day is {DAY}."),
            ([0, None], "No day is exact until the application has written more"),
            ([0, 2**63], "No day is exact until the application has written more"),
        ):
            assert damaged(request, ["t"], moments).remedy.startswith(remedy)
        held = damaged(request, ["t"], [0, None], is_held=True)
        assert "until verify has passed; then run this day again" in held.remedy

    def test_a_file_without_the_section_is_refused(self, tmp_path: Path) -> None:
        application = load_application(write_application(tmp_path))
        with pytest.raises(InvalidInput, match="no `snapshots:`"):
            request_of(application, topology_of(application), DAY)

    def test_an_avro_schema_is_read_from_the_file_beside(self, tmp_path: Path) -> None:
        (tmp_path / "total.avsc").write_text('"long"')
        stores = [{"name": "per-region", "value": "avro:total.avsc"}]
        assert self.request(tmp_path, {"location": "/s", "stores": stores}).stores[1].value == 'avro:"long"'

    def test_each_of_several_schemas_is_read_from_its_file(self, tmp_path: Path) -> None:
        (tmp_path / "v1.avsc").write_text('"int"')
        (tmp_path / "v2.avsc").write_text('"long"')
        stores = [{"name": "per-region", "value": "avro-confluent:17=v1.avsc, 23=v2.avsc"}]
        read = self.request(tmp_path, {"location": "/s", "stores": stores}).stores[1].value
        assert serde_named(read).earlier == ((17, '"int"'),)
        assert serde_named(read).registered_id == 23

    @staticmethod
    def request(directory: Path, snapshots: dict[str, Any]) -> SnapshotRequest:
        application = load_application(write_application(directory, snapshots=snapshots))
        return request_of(application, topology_of(application), DAY)


@pytest.mark.parametrize(
    ("snapshots", "message"),
    [
        ({}, "snapshots: found no field `location`"),
        ({"location": "snapshots"}, "snapshots.location: found 'snapshots'; expected an absolute path or a URI"),
        ({"location": "s3://key:secret@bucket/x"}, "snapshots.location: found an address with a password"),
        ({"location": "/s", "keep": 3}, "snapshots.keep: found the unknown field `keep`; expected one of catchup"),
        ({"location": "/s", "stores": [{"name": "per-regoin"}]}, "Did you mean per-region?"),
        ({"location": "/s", "stores": [{"name": "per-region"}] * 2}, "per-region a second time"),
        (
            {"location": "/s", "stores": [{"name": "per-region", "value": "int"}]},
            "found 'int'; expected string, long",
        ),
        (
            {"location": "/s", "stores": [{"name": "per-region", "value": "avro:x.avsc"}]},
            "/x.avsc; expected a file, its path as seen from",
        ),
        (
            {"location": "/s", "stores": [{"name": "per-region", "value": 'avro:{"type": 1}'}]},
            "an Avro schema in JSON",
        ),
        ({"location": "/s", "stores": [{"name": "per-region", "window_size_ms": 5}]}, "a window size for a store"),
    ],
)
def test_a_section_that_can_not_be_used_is_refused_with_its_line(
    tmp_path: Path, snapshots: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidApplication) as refused:
        load_application(write_application(tmp_path, snapshots=snapshots))
    assert message in str(refused.value)
    assert "secret" not in str(refused.value)


def test_values_that_kafka_streams_wraps_have_no_serde(tmp_path: Path) -> None:
    stores = [{"name": "per-customer", "type": "suppress"}, {"name": "per-region", "type": "outer-join"}]
    section = {"location": "/s", "stores": [{"name": "per-customer", "value": "long"}]}
    with pytest.raises(InvalidApplication, match="a serde for values of type suppress"):
        load_application(write_application(tmp_path, stores=stores, snapshots=section))
