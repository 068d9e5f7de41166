"""What the page shows in tests: applications in every situation.

The read models make them from made-up records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.windows import CutoverWindows
from kafka_rescale.core.cluster import ClusterDescription, GroupDescription, TopicDescription
from kafka_rescale.core.control.generations import Generations, promoted_generations
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lag_history import LagHistory
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Switch
from kafka_rescale.core.page.page import ApplicationPage, application_page
from kafka_rescale.core.page.summary import Summary, unknown
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.core.verify.kept import past_of
from kafka_rescale.core.verify.oracles import KeyFinding, Oracle
from kafka_rescale.core.verify.report import LogCount, PartitionContent, Report, StoreReport
from kafka_rescale.core.verify.rolling_proof import RollingProof
from kafka_rescale.kafka.admin.describe import topics_of
from kafka_rescale.operations.application.load import topology_of

from tests.support.application_files import CHAIN
from tests.support.verify.proofs import fences_of, proof_of

NOW_MS = 1_790_000_000_000
RUN = "manual__2026-09-21T10:00:00+00:00"
TIMINGS = {"drain": 0.01, "quiesce": 1.6, "prove": 0.1, "delta": 1.2, "promote": 0.2, "grow": 0.1, "start": 0.05}
TIMINGS |= {"restore": 2.4, "first_output": 0.6, "total": 6.5}


@dataclass(frozen=True)
class World:
    """One application as the control topic and the brokers would show it.

    :param current: partitions of every topic.
    """

    name: str
    current: int = 4
    target: int = 8
    control: ControlState = field(default_factory=ControlState)
    live: bool = True

    @property
    def application(self) -> Application:
        """The chain of ``application_files`` under this name."""
        return Application.model_validate({**CHAIN, "application_id": self.name, "partitions": self.target})

    @property
    def topology(self) -> Topology:
        """Three sub-topologies in a row."""
        return topology_of(self.application)

    @property
    def plan(self) -> Plan:
        """The plan of an expansion to the target."""
        counts = dict.fromkeys(topics_of(self.application, self.topology, self.name, {}), self.current)
        return build_plan(
            self.application, self.topology, blue=self.name, generation=2, current=counts, target=self.target
        )

    @property
    def cluster(self) -> ClusterDescription:
        """The running generation's topics and group."""
        generations = self.control.generations
        running = generations.running if generations else self.name
        count = generations.partitions if generations else self.current
        names = topics_of(self.application, self.topology, running, {})
        group = GroupDescription(running, "Stable" if self.live else "Empty", ("i-1", "i-2") if self.live else ())
        ends = {("orders", p): 1000 + p for p in range(count)}
        return ClusterDescription(
            "c",
            brokers=1,
            topics={name: TopicDescription(name, count, 1) for name in names},
            group=group,
            committed={at: end - 7 for at, end in ends.items()},
            ends=ends,
        )

    def page(self) -> ApplicationPage:
        """Return the page that the read models make of this application."""
        return application_page(self.application, self.topology, self.control, self.cluster, NOW_MS)


def copying(name: str, current: int = 4, target: int = 8, readings: int = 40) -> World:
    """An expansion whose last stage is being warmed up."""
    world = World(name, current, target)
    first, second = (m.source for m in world.plan.changelogs)
    results = [
        result("restore/1", "done", progress(first, current, 0), readings, 0),
        result("warm_up/1", "done", progress(first, current, 90), readings, 400_000),
        result("lag_gate/1", "open", progress(first, current, 90), 4, 700_000),
        result("restore/2", "running", progress(second, current, 70_000), readings, 1_640_000),
    ]
    return replace(world, control=control(world, Phase.WARMING, results))


def waiting(name: str) -> World:
    """An expansion whose copies are close, and whose switch waits for its window."""
    world = copying(name)
    journal = world.control.journal
    assert journal is not None
    weekly = CutoverWindows(windows=("sun 02:00-05:00",))
    switch = Switch.of(journal, None).begun(NOW_MS, 604_800_000, weekly, 86_400_000, asks=False)
    return replace(world, control=world.control.model_copy(update={"switch": switch}))


def proven(world: World, *stores: StoreReport) -> ControlState:
    """A control state with a proof that is two minutes old.

    A rolling proof has extended it up to five seconds ago.

    :param stores: the rolling proof's findings in what was written since the proof.
    """
    journal = world.control.journal
    assert journal is not None
    fences = fences_of(journal)
    before, since = (fences.model_copy(update={"as_of_ms": NOW_MS - ago}) for ago in (120_000, 5_000))
    rolling = RollingProof.begun(journal, before).extended(since, stores, 0.4)
    proof = proof_of(journal).model_copy(update={"fences": before})
    records = {"proof": proof.model_dump(mode="json"), "rolling_proof": rolling.model_dump(mode="json")}
    return world.control.model_copy(update=records)


def paused(name: str) -> World:
    """The old generation is stopped, the last delta is being copied."""
    world = copying(name)
    journal = world.control.journal
    assert journal is not None
    timings = {k: TIMINGS[k] for k in ("drain", "quiesce", "prove")}
    changed = journal.model_copy(
        update={"phase": Phase.QUIESCED, "timings": timings, "pause_started_ms": NOW_MS - 3_200}
    )
    return replace(world, control=world.control.model_copy(update={"journal": changed}), live=False)


def complete(name: str, current: int = 4, target: int = 8, *, passed: bool = True) -> World:
    """An expansion that is over, or whose verification has findings."""
    world = copying(name, current, target)
    phase = Phase.COMPLETE if passed else Phase.STARTED
    results = [r for r in world.control.results.values() if r.state != "running"]
    every = [each for m in world.plan.changelogs for each in progress(m.source, current, 0)]
    results.append(result("catch_up", "done", every, 60, 1_000_000))
    found = control(world, phase, results, timings=TIMINGS, prewarmed={"restore": 21.0}, begun_ms=NOW_MS - 95_000)
    assert found.journal is not None
    changes: dict[str, Any] = {"generations": promoted_generations(found.journal)}
    promotion = {"promotion": found.journal.promotion}
    changes["report"] = report(world, passed).model_dump(mode="json") | promotion
    kept = found.model_copy(update=changes)
    if passed:
        past = past_of(kept, found.journal, phase, NOW_MS - 5_000)
        kept = kept.model_copy(update={"history": {past.key: past}})
    return replace(world, control=kept)


def quiet(name: str, *, live: bool = True) -> World:
    """An application without an expansion."""
    generations = Generations(running=f"{name}-g3", generation=3, partitions=6)
    return World(name, 6, 6, ControlState(generations=generations), live=live)


def control(world: World, phase: Phase, results: Sequence[JobResult], **fields: Any) -> ControlState:
    """Return the control state of an expansion."""
    owner = f"expand_{world.name}/{RUN}"
    return ControlState(
        lease=Lease(owner=owner, epoch=1, target=world.target, expires_at_ms=NOW_MS),
        journal=Journal(plan=world.plan, phase=phase, owner=owner, pause_started_ms=NOW_MS - 60_000, **fields),
        results={r.job: r.model_copy(update={"run": owner}) for r in results},
    )


def progress(topic: str, partitions: int, lag: int, end: int = 1_000_000) -> list[PartitionProgress]:
    """Return copies whose lag is about ``lag``. It differs from partition to partition."""
    return [
        PartitionProgress(
            topic=topic,
            partition=p,
            position=end - lag * (1 + p % 7) // 4,
            end=end,
            records=9_000,
            bytes=900_000,
            begin=0,
        )
        for p in range(partitions)
    ]


def result(
    job: str, state: str, last: list[PartitionProgress], readings: int, began_ms: int = 800_000
) -> JobResult:
    """Return the result of a job after so many readings, during which its copies caught up."""
    history = LagHistory()
    threshold = None if job.startswith("restore") else 10_000
    for number in range(readings):
        left = (1 - number / readings) ** 1.6
        shown = [p.model_copy(update={"position": _position(p, left)}) for p in last]
        at_ms = NOW_MS - 2_000_000 + began_ms + number * 9_000
        history = history.observed(shown if number < readings - 1 else last, at_ms, threshold)
    return JobResult(
        job=job,
        run="",
        attempt=1,
        state=state,
        records=sum(p.records for p in last),
        bytes=sum(p.bytes for p in last),
        seconds=readings * 3.0,
        partitions=tuple(last),
        lags=history,
    )


def _position(last: PartitionProgress, left: float) -> int:
    """Return the position of a copy when this share of it was left. Some partitions begin later."""
    return max(-1, int(last.position * (1 - left * (1 + last.partition % 5 / 9))))


def report(world: World, passed: bool) -> Report:
    """Return a verification report over all stores."""
    stores = []
    for move in world.plan.changelogs:
        after = [900 + 37 * (p * 7 % 11) for p in range(world.target)]
        before = [sum(after) // world.current + 13 * (p % 3) for p in range(world.current)]
        count = LogCount(records=sum(after) * 3, live=sum(after), tombstoned=41)
        wrong = KeyFinding(oracle=Oracle.STATE, subject=move.store, detail="not in green", key="6b31", text="k1")
        stores.append(
            StoreReport(
                store=move.store,
                store_type=move.store_type,
                blue_topic=move.source,
                green_topic=move.target,
                blue=count,
                green=count,
                expired=0,
                surplus=0,
                partitions=tuple(_content(p, live) for p, live in enumerate(after)),
                blue_partitions=tuple(before),
                failures={} if passed else {Oracle.STATE: 1},
                findings=() if passed else (wrong,),
            )
        )
    return Report(
        application=world.name,
        blue=world.plan.blue,
        green=world.plan.green,
        generation=2,
        plan=world.plan.fingerprint,
        passed=passed,
        as_of_ms=NOW_MS - 20_000,
        seconds=14.2,
        start_offsets=(),
        stores=tuple(stores),
    )


def _content(partition: int, live: int) -> PartitionContent:
    digest = f"{live * 77:016x}"
    return PartitionContent(
        partition=partition, blue_live=live, green_live=live, blue_hash=digest, green_hash=digest
    )


class MadeSource:
    """Serves worlds. The content of ``worlds`` may change while it is served."""

    def __init__(self, *worlds: World, broken: Sequence[str] = ()) -> None:
        self.worlds = {world.name: world for world in worlds}
        self.broken = tuple(broken)

    def applications(self) -> list[str]:
        """Return all names."""
        return [*self.worlds, *self.broken]

    def summaries(self, application_ids: Sequence[str]) -> list[Summary]:
        """Return the lines."""
        return [
            unknown(each, "the broker does not answer")
            if each in self.broken
            else self.worlds[each].page().summary
            for each in application_ids
        ]

    def page(self, application_id: str) -> ApplicationPage:
        """Return everything but the report."""
        if application_id in self.broken:
            raise LookupError("the broker does not answer")
        return self.worlds[application_id].page()

    def report(self, application_id: str) -> dict[str, Any]:
        """Return the report."""
        return dict(self.worlds[application_id].control.report)
