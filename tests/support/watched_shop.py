"""The small application on a broker, which the watch of autoscaling looks at again and again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from kafka_rescale.core.autoscaling.decision import Outcome, RunState
from kafka_rescale.core.control.autoscaling import Autoscaling
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.application.load import load_application, topology_of
from kafka_rescale.operations.watch import Watched, watch

from tests.support.small_application import topic_configs, write

MINUTE = 60_000
ON = {"partition.autoscaling.enabled": True}


@dataclass
class Shop:
    """The small application on the broker, and the looks of the watch."""

    client: Mapping[str, str]
    name: str
    directory: Path
    runs: dict[str, RunState] = field(default_factory=dict)
    now_ms: int = 1_000_000
    looks: int = 0

    @property
    def connection(self) -> KafkaConnection:
        return KafkaConnection(dict(self.client))

    @property
    def control(self) -> ControlTopic:
        return ControlTopic(self.connection, self.name)

    def look(self, *, later_ms: int = 2 * MINUTE, attempt: int = 1, **fields: Any) -> Watched:
        """Look once. Each look is another run of the watch.

        :param fields: fields of the application file.
        """
        self.looks += 1
        self.now_ms += later_ms
        application = load_application(write(self.directory, self.name, **fields))
        return watch(
            application,
            topology_of(application),
            self.connection,
            by=f"watch_{self.name}/{self.looks}",
            attempt=attempt,
            run_state=lambda run: self.runs.get(run, RunState.ABSENT),
            now_ms=self.now_ms,
        )

    def outcome(self, **arguments: Any) -> Outcome:
        """Look once, and return the outcome."""
        return self.look(**arguments).decision.outcome

    def triggered(self, **arguments: Any) -> str:
        """Look once, and return the run that it asks for. This run runs from then on."""
        trigger = self.look(**arguments).decision.trigger
        assert trigger is not None
        run = f"expand_{self.name}/{trigger.run_id}"
        self.runs[run] = RunState.RUNNING
        return run

    def grow(self, **counts: int) -> None:
        """Grow topics. Their names are without the application's prefix, and with underscores for dashes."""
        targets = {f"{self.name}-{topic.replace('_', '-')}": n for topic, n in counts.items()}
        ClusterAdmin(self.connection).grow_topics(targets)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Its input topics."""
        return f"{self.name}-orders", f"{self.name}-customers"

    def has_processed(self, offsets: int) -> None:
        """Commit so many offsets of each partition of its orders. Afterwards its group has no member."""
        consumer = Consumer({**self.client, "group.id": self.name})
        orders, _ = self.inputs
        consumer.commit(offsets=[TopicPartition(orders, p, offsets) for p in range(4)], asynchronous=False)
        consumer.close()

    def remembered(self) -> Autoscaling | None:
        """The record of autoscaling in the control topic."""
        return self.control.read().autoscaling

    def begins(self, *, phase: Phase = Phase.WARMING) -> Journal:
        """Begin an expansion to 8: put its journal into the control topic."""
        application = load_application(write(self.directory, self.name))
        plan = build_plan(
            application,
            topology_of(application),
            blue=self.name,
            generation=2,
            current={**dict.fromkeys(topic_configs(self.name), 4), f"{self.name}-customers": 8},
            target=8,
        )
        journal = Journal(plan=plan, phase=phase, owner=f"expand_{self.name}/a-person")
        self.control.update(lambda _: {Concern.JOURNAL: journal})
        return journal
