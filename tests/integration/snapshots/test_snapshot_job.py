"""Snapshots with Spark: the submitted job, and the table as Spark SQL reads it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.kafka.control.control_topic import ControlTopic
from pyspark.sql import SparkSession

from tests.integration.spark_job_helpers import submitted
from tests.support.snapshot_world import FIRST, STORE, SnapshotWorld, orders_of_days

pytestmark = pytest.mark.integration

DAYS = [FIRST.minus(-n) for n in range(7)]


@pytest.fixture
def world(client: dict[str, str], unique: str, tmp_path: Path) -> SnapshotWorld:
    return SnapshotWorld(client, unique, tmp_path / "snapshots")


# In `make test`, test_snapshots.py::test_seven_days_are_what_a_replay_of_the_input_says, and below the days that
# Spark SQL reads
@pytest.mark.slow
def test_seven_days_as_spark_sql_reads_them(world: SnapshotWorld, spark: SparkSession) -> None:
    world.create(orders_of_days(7), transactional=True)
    for day in DAYS:
        world.take(day, spark)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    table = spark.read.parquet(f"{world.directory}/{world.application}/{STORE}")
    for day in DAYS:
        rows = table.where(f"date = '{day}'").select("decoded_key", "decoded_value").collect()
        assert {row[0]: row[1] for row in rows} == world.expected(day)
    assert table.where("timestamp >= date_add(date, 1)").count() == 0


BEFORE = {"type": "record", "name": "Total", "fields": [{"name": "total", "type": "int"}]}
AFTER = {
    **BEFORE,
    "fields": [{"name": "currency", "type": "string", "default": "CHF"}, {"name": "total", "type": "long"}],
}
IN_A_STRUCT = "decoded_value.total"


def _avro(value: dict[str, Any], schema: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    schemaless_writer(stream, parse_schema(schema), value)
    return stream.getvalue()


def _of_two_schemas(total: int, number: int) -> bytes:
    if number % 2:
        return b"\0\0\0\0\x11" + _avro({"total": total}, BEFORE)
    return b"\0\0\0\0\x17" + _avro({"total": total, "currency": "EUR"}, AFTER)


@pytest.mark.parametrize(
    ("serde", "encode", "total"),
    [
        # In `make test`, Avro by the schemas of a registry; U/test_serdes.py decodes the others.
        pytest.param(
            "json",
            lambda total, _: json.dumps({"total": total}).encode(),
            "get_json_object(decoded_value, '$.total')",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            f"avro:{json.dumps(BEFORE)}",
            lambda total, _: _avro({"total": total}, BEFORE),
            IN_A_STRUCT,
            marks=pytest.mark.slow,
        ),
        (f"avro-confluent:17={json.dumps(BEFORE)},23={json.dumps(AFTER)}", _of_two_schemas, IN_A_STRUCT),
    ],
    ids=["json", "avro", "two schemas of a registry"],
)
def test_json_and_avro_as_spark_sql_reads_them(
    serde: str, encode: Callable[[int, int], bytes], total: str, world: SnapshotWorld, spark: SparkSession
) -> None:
    world.serde, world.encode = serde, encode
    world.create(orders_of_days(2))
    for day in DAYS[:2]:
        world.take(day, spark)
    table = spark.read.parquet(f"{world.directory}/{world.application}/{STORE}")
    for day in DAYS[:2]:
        rows = table.where(f"date = '{day}'").selectExpr("decoded_key", f"cast({total} AS bigint)").collect()
        assert {row[0]: row[1] for row in rows} == world.expected(day)


# In `make test`, S/test_airflow_standalone.py::test_a_snapshot_holds_every_key_of_every_store, by `spark-submit`
# in Airflow
@pytest.mark.slow
def test_the_job_says_what_it_has_read_beside_a_run_that_holds_the_lease(
    world: SnapshotWorld, tmp_path: Path
) -> None:
    world.create(orders_of_days(2))
    day = DAYS[0]
    job = world.job(day)
    control = ControlTopic(job.connection, world.application)
    lease = Lease(owner="expand_x/manual__1", epoch=3, target=8, expires_at_ms=2**60)
    control.update(lambda _: {"lease": lease})
    plan: Any = SimpleNamespace(application=world.application)
    with submitted(job.connection, tmp_path, "snapshot", plan, "--request", job.arguments.request) as process:
        assert process.result() == 0, process.text()[-4000:]
    state = control.read()
    assert state.lease == lease
    result = state.results[f"snapshot/{day}"]
    assert (result.state, result.as_of_ms) == ("done", day.end_ms)
    assert 0 < result.records < len(world.orders)
    assert f"rows: {STORE} {len(world.expected(day))}" in result.detail
    assert world.totals(day) == world.expected(day)


@pytest.mark.slow
def test_a_refused_day_ends_with_its_reason(world: SnapshotWorld, tmp_path: Path) -> None:
    world.create(orders_of_days(1))
    job = world.job(DAYS[0])
    request = world.request(DAYS[0]).model_copy(update={"date": "2999-01-01"}).model_dump_json()
    plan: Any = SimpleNamespace(application=world.application)
    with submitted(job.connection, tmp_path, "snapshot", plan, "--request", request) as process:
        assert process.result() == 1
    result = ControlTopic(job.connection, world.application).read().results["snapshot/2999-01-01"]
    assert result.state == "failed"
    assert result.detail.startswith("InvalidInput: snapshot of")
