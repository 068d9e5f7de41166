"""Preflight asks for the permissions on the topics that the running generation reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from kafka_rescale.core.acls.acls import Operation, Resource
from kafka_rescale.core.acls.missing import Right
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import PreflightRefused
from kafka_rescale.core.roles import Role
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.preflight import permissions
from kafka_rescale.operations.preflight.permissions import permitted_state

from tests.support.secured import SHOP

MOVED = ControlState(
    generations=Generations(running="shop-g2", generation=2, previous="shop", inputs={"payments": "payments-p8"})
)


class Topic:
    """A control topic of an application whose expansion has moved `payments`."""

    def __init__(self, *_: object) -> None:
        pass

    def read(self) -> ControlState:
        return MOVED


class Reader:
    """Brokers that allow everything, but no growth of one topic."""

    def __init__(self, *_: object) -> None:
        pass

    def read(self, role: Role, names: Mapping[Resource, Iterable[str]]) -> list[Right]:
        return [
            Right(
                role,
                resource,
                name,
                frozenset(Operation) - ({Operation.ALTER} if name == "payments-p8" else set()),
            )
            for resource, several in names.items()
            for name in several
        ]


def test_what_is_missing_on_the_topic_that_is_read_instead_of_an_input_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(permissions, "ControlTopic", Topic)
    monkeypatch.setattr(permissions, "RightsReader", Reader)
    inputs = [{**i, **({"policy": "paused"} if i["topic"] == "payments" else {})} for i in SHOP["inputs"]]
    application = Application.model_validate({**SHOP, "inputs": inputs})
    connection = KafkaConnection({"bootstrap.servers": "h:9"})
    with pytest.raises(PreflightRefused) as refused:
        permitted_state(application, topology_of(application), dict.fromkeys(Role, connection))
    (finding,) = refused.value.findings
    assert "role admin): found no Alter on topic 'payments-p8'" in str(finding)
