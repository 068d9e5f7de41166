"""The clients of a pipeline in its application file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.assignment.stream_threads import Decision
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.operations.application.load import load_pipeline_application

from tests.support.words_pipeline import write_pipeline

A: dict[str, Any] = {"client.id": "a", "state.dir": "/a", "client.tag.zone": "east"}
B: dict[str, Any] = {"client.id": "b", "state.dir": "/b", "client.tag.zone": "west"}
R = {"rack.id": "east"}
TAGGED = {"state.dir": None, "rack.aware.assignment.tags": ["zone"]}


def test_a_rack_id_is_short_for_the_only_tag(tmp_path: Path) -> None:
    clients = [A | {"rack.id": "east"}, B | {"rack.id": "west"}]
    application = load_pipeline_application(write_pipeline(tmp_path, clients=clients, **{"state.dir": None}))
    assert [client.tags["rack"] for client in application.members] == ["east", "west"]
    assert application.assignment_configs.rack_aware_assignment_tags == ("rack",)


def test_clients_are_declared_under_the_names_of_kafka_streams(tmp_path: Path) -> None:
    b = {**B, "num.stream.threads": 3, "spark_conf": {"spark.executor.cores": "2"}, "spark_conn_id": "spark_b"}
    file = write_pipeline(
        tmp_path,
        clients=[A, b],
        **{
            "state.dir": None,
            "num.standby.replicas": 1,
            "max.warmup.replicas": 4,
            "acceptable.recovery.lag": 100,
            "probing.rebalance.interval.ms": 120_000,
            "rack.aware.assignment.tags": ["zone"],
            "uncaught.exception.handler": "SHUTDOWN_CLIENT",
        },
    )
    application = load_pipeline_application(file)
    first, second = application.members
    assert (first.client_id, first.state_dir, first.client_tags) == ("a", "/a", {"zone": "east"})
    assert [application.threads_of(client) for client in application.members] == [2, 3]
    assert application.member_of("b-StreamThread-3") == second
    configs = application.assignment_configs
    assert (configs.num_standby_replicas, configs.max_warmup_replicas) == (1, 4)
    assert (configs.acceptable_recovery_lag, configs.probing_rebalance_interval_ms) == (100, 120_000)
    assert configs.rack_aware_assignment_tags == ("zone",)
    assert application.uncaught_exception_handler == Decision.SHUTDOWN_CLIENT
    with pytest.raises(InvalidInput, match="one of a, b"):
        application.member("c")


def test_without_clients_there_is_one_with_the_name_of_the_application(tmp_path: Path) -> None:
    application = load_pipeline_application(write_pipeline(tmp_path))
    (alone,) = application.members
    assert (alone.client_id, alone.state_dir) == ("words", application.state_dir)
    assert application.member_of("words-StreamThread-1") == alone


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clients": [A, B]}, "`state.dir` beside `clients`"),
        ({"clients": [A, A | {"state.dir": "/b"}], "state.dir": None}, "several clients with `client.id` a"),
        ({"clients": [A, B | {"state.dir": "/a/"}], "state.dir": None}, "several clients with `state.dir` /a"),
        ({"clients": [A | {"state.dir": "a"}], "state.dir": None}, "expected an absolute path or a URI"),
        ({"clients": [{"client.id": "a"}], "state.dir": None}, "no field `state.dir`"),
        ({"clients": [A | {"num.stream.thread": 1}], "state.dir": None}, "Did you mean `num.stream.threads`?"),
        ({"clients": [A | {"client.tag.zone": "x" * 31}], "state.dir": None}, "at most 30 characters"),
        ({"clients": [A | {"client.tag." + "x" * 21: "x"}], "state.dir": None}, "at most 20 characters"),
        ({"clients": [A | {f"client.tag.{n}": "x" for n in range(5)}], "state.dir": None}, "at most 5"),
        (
            {"clients": [A, B], "state.dir": None, "rack.aware.assignment.tags": ["zone", "cluster"]},
            "client a: 'cluster' without a value",
        ),
        ({"rack.aware.assignment.tags": ["zone"]}, "without `clients`"),
        ({"clients": [A | R, B], "state.dir": None}, "client b without `rack.id`"),
        ({"clients": [A | R, B | R], **TAGGED}, "`rack.id` beside `rack.aware.assignment.tags`"),
        ({"clients": [A | R | {"client.tag.rack": "x"}], "state.dir": None}, "`rack.id` and `client.tag.rack`"),
        ({"clients": [A | {"rack.id": "x" * 31}], "state.dir": None}, "at most 30 characters"),
        ({"rack.standby.task.assignor": "module:Class"}, "expected `rack.id` of every client"),
        ({"num.standby.replicas": -1}, "0 or more"),
        ({"max.warmup.replicas": 0}, "1 or more"),
        ({"acceptable.recovery.lag": -1}, "0 or more"),
        ({"probing.rebalance.interval.ms": 59_999}, "60000 or more"),
        ({"uncaught.exception.handler": "IGNORE"}, "REPLACE_THREAD"),
        ({"statestore.cache.max.bytes": -1}, "0 or more"),
    ],
)
def test_a_mistake_is_one_message_with_its_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    file = write_pipeline(tmp_path, **changes)
    with pytest.raises(InvalidInput) as refused:
        load_pipeline_application(file)
    assert message in str(refused.value)
    assert f"{file}:" in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
