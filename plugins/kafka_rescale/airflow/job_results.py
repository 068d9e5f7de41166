"""What a Spark job has left in the control topic, small enough for XCom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_rescale.kafka.connection import KafkaConnection

REPORT = "verify"


def result_of(connection: KafkaConnection, application_id: str, key: str) -> dict[str, Any]:
    """Return a job's result without its per-partition part, or the report's plain fields for ``verify``."""
    from kafka_rescale.kafka.control_topic import ControlTopic

    state = ControlTopic(connection, application_id).read()
    if key == REPORT:
        return {k: v for k, v in state.report.items() if isinstance(v, str | int | float | bool)}
    result = state.results.get(key)
    return result.model_dump(mode="json", exclude={"partitions"}) if result else {}
