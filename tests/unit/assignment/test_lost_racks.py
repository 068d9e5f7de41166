"""Racks are lost and come back: a task's client has its state if any client has, and copies are on other racks."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from kafka_rescale.core.assignment.assignment import Assignment
from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.tasks import Role, TaskId, Tasks
from kafka_rescale.core.assignment.validation import flaws
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.processing.rebalance import Member, Rebalance

ACCEPTABLE = 20
STATEFUL = [TaskId(0, p) for p in range(6)]
STATELESS = frozenset(TaskId(1, p) for p in range(2))
ZONES, CLUSTERS = ("z1", "z2", "z3"), ("k1", "k2")
CLIENTS = {f"{zone}-{cluster}": (zone, cluster) for zone in ZONES for cluster in CLUSTERS}


class LostRacks(RuleBasedStateMachine):
    """Runs, looks of standbys, and racks that go and come back. Saved state of a client survives its absence."""

    @initialize(standbys=st.integers(0, 2), by_zone_only=st.booleans())
    def begin(self, standbys: int, by_zone_only: bool) -> None:
        """Make the first run, on empty changelogs."""
        tags = ("zone",) if by_zone_only else ("zone", "cluster")
        self.configs = AssignmentConfigs(
            ACCEPTABLE, num_standby_replicas=standbys, rack_aware_assignment_tags=tags
        )
        self.ends = dict.fromkeys(STATEFUL, 0)
        self.saved: dict[str, dict[TaskId, int]] = {name: {} for name in CLIENTS}
        self.away: set[str] = set()
        self.processing: Processing | None = None
        self.run(0)

    @rule(written=st.integers(0, 3 * ACCEPTABLE))
    def run(self, written: int) -> None:
        """Rebalance. Then every task writes to its changelog, and its client saves the state."""
        before = {name: dict(saved) for name, saved in self.saved.items()}
        tasks = Tasks(dict(self.ends), STATELESS)
        members = [self.member(name) for name in CLIENTS]
        self.processing = Rebalance("run", 0, tasks, members, self.configs).of(self.processing)
        self.restored = self.restore_work(before)
        for task in STATEFUL:
            self.ends[task] += written
            (active,) = self.assignment.holders(task, Role.ACTIVE)
            self.saved[active][task] = self.ends[task]

    @rule()
    def keep_warm(self) -> None:
        """Let every standby read to the end."""
        for task in STATEFUL:
            for client in self.assignment.holders(task, Role.STANDBY) - self.away:
                self.saved[client][task] = self.ends[task]

    @precondition(lambda self: len({zone for name, (zone, _) in CLIENTS.items() if name not in self.away}) > 1)
    @rule(zone=st.sampled_from(ZONES))
    def lose(self, zone: str) -> None:
        """Lose all clients of a zone at once."""
        left = {name for name in CLIENTS if CLIENTS[name][0] != zone} - self.away
        if left:
            self.away |= {name for name in CLIENTS if CLIENTS[name][0] == zone}

    @rule(zone=st.sampled_from(ZONES), is_empty=st.booleans())
    def come_back(self, zone: str, is_empty: bool) -> None:
        """Bring a zone's clients back, with the state they had or without state."""
        back = {name for name in self.away if CLIENTS[name][0] == zone}
        self.away -= back
        for name in back if is_empty else ():
            self.saved[name] = {}

    @invariant()
    def nobody_restores_what_another_client_has(self) -> None:
        """If a present client was within the acceptable lag of a task, the task's restore work is within it."""
        for task, (work, least) in self.restored.items():
            assert work <= max(ACCEPTABLE, least), task

    @invariant()
    def copies_are_where_they_may_be(self) -> None:
        """Each task is active once, absent clients have no tasks, and warm-ups are within their limit."""
        there = [c.client_id for c in self.processing.clients if not c.absent] if self.processing else []
        taking_part = {name: has for name, has in self.assignment.clients.items() if name in there}
        found = Assignment(taking_part, self.assignment.movements)
        assert flaws(found, Tasks(dict(self.ends), STATELESS), there) == ()
        beyond = 0
        for task in STATEFUL:
            copies = found.holders(task, Role.ACTIVE) | found.holders(task, Role.STANDBY)
            wanted = min(len(there), 1 + self.configs.num_standby_replicas)
            assert len(copies) >= wanted
            beyond += len(copies) - wanted
            zones = {CLIENTS[name][0] for name in copies}
            if not found.movements:
                assert len(zones) == min(wanted, len({CLIENTS[name][0] for name in there}))
        assert beyond <= self.configs.max_warmup_replicas

    @property
    def assignment(self) -> Assignment:
        assert self.processing is not None
        return self.processing.assignment

    def member(self, name: str) -> Member:
        """The report of a client."""
        zone, cluster = CLIENTS[name]
        tags = {"zone": zone, "cluster": cluster}
        if name in self.away:
            return Member(name, 1, f"/{name}", tags, absent="gone")
        lags = {task: self.ends[task] - saved for task, saved in self.saved[name].items()}
        return Member(name, 1, f"/{name}", tags, lags)

    def restore_work(self, saved: dict[str, dict[TaskId, int]]) -> dict[TaskId, tuple[int, int]]:
        """For each task, the records that its client has to restore, and the fewest of any client."""
        found = {}
        for task, end in self.ends.items():
            lags = {name: end - saved[name].get(task, 0) for name in CLIENTS if name not in self.away}
            (active,) = self.assignment.holders(task, Role.ACTIVE)
            found[task] = lags[active], min(lags.values())
        return found


TestLostRacks = LostRacks.TestCase
TestLostRacks.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
