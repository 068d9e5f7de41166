"""The DAGs of the reference, as they are made for an example."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.application.streams import Application, Mode
from kafka_rescale.core.expansion.run import RUN
from kafka_rescale.core.pipeline import STRING, Pipeline, StreamsBuilder
from kafka_rescale.operations.application.load import DIRECTORY_VARIABLE

from scripts.reference_of_models import table

if TYPE_CHECKING:
    from airflow.sdk import DAG

# The page shows <application> instead of this name, so no name has to be invented.
EXAMPLE: dict[str, Any] = {
    "application_id": "APPLICATION",
    "partitions": 8,
    "inputs": [{"topic": "orders", "policy": "repartitioned", "isolation_level": "read_committed"}],
    "subtopologies": [{"sources": ["orders"], "stores": ["totals"]}],
    "stores": [{"name": "totals", "type": "timestamped-key-value"}],
    "lifecycle": {"type": "manual"},
    "snapshots": {"location": "/data/snapshots"},
}

PIPELINE_EXAMPLE = {
    "application_id": "APPLICATION",
    "runtime": "spark",
    "pipeline": "scripts.reference_of_dags:example_pipeline",
    "clients": [{"client.id": "east", "state.dir": "/mnt/east"}, {"client.id": "west", "state.dir": "/mnt/west"}],
}


def dags() -> Iterator[str]:
    """Yield the section of the DAGs, line by line."""
    yield "## DAGs\n"
    yield "As they are for an application with one sub-topology, whose input is repartitioned. With `schedule:`,"
    yield "`approve_cutover` is off by default; with autoscaling declared, its watch runs every 120 s;"
    yield "without a repartitioned input, its bridge is paused at first.\n"
    for title, dag in _example_dags():
        yield "\n".join(_dag(title, dag)).replace("APPLICATION", "<application>").replace("CHAIN", "<name>")


def run_in_order() -> Iterator[str]:
    """Yield the section of the run of an expansion, line by line."""
    yield "## The run of an expansion\n"
    yield "Every task of `expand_<application>` in its order, from `plugins/kafka_rescale/core/expansion/run.py`."
    yield "Tasks of a stage come once per sub-topology, the most downstream stage first. No task waits for one"
    yield "that only the other mode has.\n"
    modes = {None: "both", Mode.BLUE_GREEN: "`blue_green`", Mode.IN_PLACE: "`in_place`"}
    header = ("task", "mode", "", "waits for", "if it fails")
    yield table(
        header,
        (
            (
                f"`{step.task}`" + (", per stage" if step.is_per_stage else ""),
                modes[step.mode],
                " ".join(filter(None, (step.does, step.unless))),
                ", ".join(f"`{each}`" for each in step.waits_for),
                step.if_it_fails.value,
            )
            for step in RUN
        ),
    )


def example_pipeline() -> Pipeline:
    """Return a pipeline of two levels."""
    builder = StreamsBuilder()
    records = builder.stream("orders", key=STRING, value=STRING)
    records.select_key(lambda key, value: value).group_by_key().count(store="totals").to_stream().to("counted")
    return builder.build()


def _dag(title: str, dag: DAG) -> Iterator[str]:
    ordered = sorted(dag.tasks, key=lambda task: len(task.get_flat_relative_ids(upstream=True)))
    paused = {True: "; paused at first", False: "; not paused at first", None: ""}[dag.is_paused_upon_creation]
    yield f"### {title}\n"
    yield f"Runs {_when(dag)}{paused}. Tasks: {', '.join(f'`{task.task_id}`' for task in ordered)}.\n"
    params = {key: dag.params.get_param(key) for key in dag.params}
    if params:
        rows = [(f"`{key}`", _type(p.schema), _default_param(p), _markdown(p.schema)) for key, p in params.items()]
        yield table(("param", "type", "default", ""), rows)


def _when(dag: DAG) -> str:
    if dag.schedule is None:
        return "when it is triggered"
    if isinstance(dag.schedule, timedelta):
        return f"every {dag.schedule.total_seconds():.0f} s"
    if isinstance(dag.schedule, str):
        return f"by `{dag.schedule}`"
    return "once a day, for the day before (UTC)"


def _example_dags() -> list[tuple[str, DAG]]:
    from kafka_rescale.airflow.dags.bridge import bridge_dag
    from kafka_rescale.airflow.dags.expansion import expansion_dag
    from kafka_rescale.airflow.dags.keep_warm import keep_warm_dag
    from kafka_rescale.airflow.dags.maintenance import accept_dag, pace_dag, retire_dag, roll_back_dag, switch_dag
    from kafka_rescale.airflow.dags.process import process_dag
    from kafka_rescale.airflow.dags.snapshot import snapshot_dag
    from kafka_rescale.airflow.dags.watch import watch_dag

    file, application = Path("FILE"), Application.model_validate(EXAMPLE)
    inputs = [{"topic": "orders", "policy": "unkeyed"}]
    in_place = Application.model_validate(EXAMPLE | {"mode": Mode.IN_PLACE, "inputs": inputs})
    kinds = (
        expansion_dag,
        roll_back_dag,
        switch_dag,
        pace_dag,
        accept_dag,
        retire_dag,
        bridge_dag,
        watch_dag,
        snapshot_dag,
    )
    made = [dag for kind in kinds if (dag := kind(application, file)) is not None]
    pipeline = PipelineApplication.model_validate(PIPELINE_EXAMPLE)
    made += [dag for kind in (process_dag, keep_warm_dag) if (dag := kind(pipeline, file)) is not None]
    first, *others = [(f"`{dag.dag_id}`", dag) for dag in [*made, *_chain_dags()]]
    return [first, (f"{first[0]} with `mode: in_place`", expansion_dag(in_place, file)), *others]


def _chain_dags() -> list[DAG]:
    from kafka_rescale.airflow.dags.chain import chain_dags

    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "example.yaml").write_text(json.dumps(EXAMPLE | {"chain": "CHAIN"}))
        with patch.dict(os.environ, {DIRECTORY_VARIABLE: directory}):
            return list(chain_dags().values())


def _type(schema: dict[str, Any]) -> str:
    types = schema.get("type", "string")
    return ", ".join(t for t in ([types] if isinstance(types, str) else types) if t != "null")


def _default_param(param: Any) -> str:
    if not param.has_value:
        return "empty" if "null" in param.schema["type"] else "required"
    return f"`{param.value}`".lower() if isinstance(param.value, bool) else f"`{param.value}`"


def _markdown(schema: dict[str, Any]) -> str:
    return str(schema.get("description_md", ""))
