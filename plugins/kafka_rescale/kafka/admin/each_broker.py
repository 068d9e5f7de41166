"""One request to every broker that is up, with kafka-python's admin client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka.errors import KafkaError

REQUEST_SECONDS = 10.0
"""How long a broker may take. If it takes longer, an error stands for its answer."""


async def answers_by_broker(client: Any, request: Callable[[], Any]) -> dict[int, Any]:
    """Ask all brokers at once. Return each broker's answer, or its error, by node id.

    :param client: kafka-python's admin client.
    :param request: returns a new request. Encoding adapts it to the version that the broker knows, so each broker
        needs its own.
    """
    timeout_ms = round(REQUEST_SECONDS * 1000)
    waiting = {}
    for broker in sorted(each.node_id for each in client._manager.cluster.brokers()):
        waiting[broker] = client._manager.send(request(), node_id=broker, request_timeout_ms=timeout_ms)
    answers: dict[int, Any] = {}
    for broker, answer in waiting.items():
        try:
            answers[broker] = await answer
        except KafkaError as error:
            answers[broker] = error
    return answers
