"""Writes the pages of docs/ that say what the code says of its own fields, commands, DAGs, operators and records.

PYTHONPATH=plugins .venv/bin/python -m scripts.create_reference
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from kafka_rescale.core.application import Application, Mode
from kafka_rescale.core.autoscaling_bounds import Bounds
from kafka_rescale.core.autoscaling_record import Autoscaling
from kafka_rescale.core.bridge import Bridge
from kafka_rescale.core.control_records import CONTROL_TOPIC, Concern, Generations, JobResult, Lease
from kafka_rescale.core.declared_lifecycles import ManualLifecycle, PythonLifecycle, ShellLifecycle
from kafka_rescale.core.declared_snapshots import Snapshots, StoreSnapshot
from kafka_rescale.core.declared_stores import Store
from kafka_rescale.core.declared_topics import Input, Output, Producers, Repartition, SubTopologySpec
from kafka_rescale.core.journal import Captured, Journal
from kafka_rescale.core.pipeline import STRING, Pipeline, StreamsBuilder
from kafka_rescale.core.pipeline_application import PipelineApplication
from kafka_rescale.core.processing.record import Processing, ThreadRecord
from kafka_rescale.core.verification_report import Report
from kafka_rescale.operations.load import DIRECTORY_VARIABLE

from scripts.reference_of_models import documented, fields, name_of, table

if TYPE_CHECKING:
    from airflow.sdk import DAG

ROOT = Path(__file__).resolve().parent.parent
MADE = "Made from the code by `scripts/create_reference.py`; a test compares the two.\n"
SECTIONS = {
    "inputs": (Input, Producers),
    "outputs": (Output,),
    "stores": (Store,),
    "repartitions": (Repartition,),
    "subtopologies": (SubTopologySpec,),
    "lifecycle": (ShellLifecycle, PythonLifecycle, ManualLifecycle),
    "autoscaling_bounds": (Bounds,),
    "snapshots": (Snapshots, StoreSnapshot),
}
RECORDS: dict[Concern, tuple[type, ...]] = {
    Concern.LEASE: (Lease,),
    Concern.JOURNAL: (Journal, Captured),
    Concern.GENERATIONS: (Generations,),
    Concern.BRIDGE: (Bridge,),
    Concern.AUTOSCALING: (Autoscaling,),
    Concern.PROCESSING: (Processing, ThreadRecord),
    Concern.RESULT: (JobResult,),
    Concern.REPORT: (Report,),
}
# No name of an application has to be invented: it is replaced by <application> in the page.
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
    "pipeline": "scripts.create_reference:example_pipeline",
    "state.dir": "/data/state",
}


def example_pipeline() -> Pipeline:
    """Return a pipeline of two levels."""
    builder = StreamsBuilder()
    records = builder.stream("orders", key=STRING, value=STRING)
    records.select_key(lambda key, value: value).group_by_key().count(store="totals").to_stream().to("counted")
    return builder.build()


def pages() -> dict[str, str]:
    """Return the text of every page by its file's name; the same for the same code."""
    made = {
        "reference.md": ["# Reference\n", MADE, *_application(), *_pipeline(), *_commands(), *_dags()],
        "reference-internals.md": ["# Reference: operators and records\n", MADE, *_operators(), *_records()],
    }
    return {name: "\n".join(parts).rstrip() + "\n" for name, parts in made.items()}


def _application() -> Iterator[str]:
    yield "## The application file\n"
    yield "An unknown field is an error.\n"
    yield fields(Application)
    for section, models in SECTIONS.items():
        yield f"### `{section}`\n"
        for model in models:
            yield f"`{model.__name__}`: {documented(model).summary}\n"
            yield fields(model)


def _pipeline() -> Iterator[str]:
    yield "## The application file of a pipeline\n"
    yield "With `runtime: spark`; see [runtime-spark.md](runtime-spark.md).\n"
    yield fields(PipelineApplication)


def _commands() -> Iterator[str]:
    from kafka_rescale.cli.app import app
    from typer.main import get_command

    root: Any = get_command(app)
    yield "## Commands\n"
    yield f"`python -m kafka_rescale COMMAND FILE`. {root.help}"
    yield "Exit codes: 0, 1 findings or unsafe state, 2 invalid input or refused, 3 outage.\n"
    rows = []
    for name, command in root.commands.items():
        rows.append((f"**`{name}`**", "", command.help))
        options = [p for p in command.params if p.param_type_name == "option"]
        rows += [(f"`{o.opts[0]}`", _default(o.default), o.help or "") for o in options if o.name != "help"]
    yield table(("command, option", "default", ""), rows)


def _default(value: object) -> str:
    return "" if value in {None, False, ""} else f"`{value}`"


def _dags() -> Iterator[str]:
    yield "## DAGs\n"
    yield "As they are for an application with one sub-topology, whose input is repartitioned. With `schedule:`,"
    yield "`approve_cutover` is off by default; with autoscaling declared, its watch is not paused at first.\n"
    for title, dag in _example_dags():
        yield "\n".join(_dag(title, dag)).replace("APPLICATION", "<application>").replace("CHAIN", "<name>")


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
    return "once a day, for the day before (UTC)"


def _example_dags() -> list[tuple[str, DAG]]:
    from kafka_rescale.airflow.bridge_dag import bridge_dag
    from kafka_rescale.airflow.dag_factory import expansion_dag
    from kafka_rescale.airflow.maintenance_dags import retire_dag, roll_back_dag
    from kafka_rescale.airflow.process_dag import process_dag
    from kafka_rescale.airflow.snapshot_dag import snapshot_dag
    from kafka_rescale.airflow.watch_dag import watch_dag

    file, application = Path("FILE"), Application.model_validate(EXAMPLE)
    inputs = [{"topic": "orders", "policy": "unkeyed"}]
    in_place = Application.model_validate(EXAMPLE | {"mode": Mode.IN_PLACE, "inputs": inputs})
    kinds = (expansion_dag, roll_back_dag, retire_dag, bridge_dag, watch_dag, snapshot_dag)
    made = [dag for kind in kinds if (dag := kind(application, file)) is not None]
    made.append(process_dag(PipelineApplication.model_validate(PIPELINE_EXAMPLE), file))
    first, *others = [(f"`{dag.dag_id}`", dag) for dag in [*made, *_chain_dags()]]
    return [first, (f"{first[0]} with `mode: in_place`", expansion_dag(in_place, file)), *others]


def _chain_dags() -> list[DAG]:
    from kafka_rescale.airflow.chain_dags import chain_dags

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


def _operators() -> Iterator[str]:
    from scripts.reference_of_operators import operators

    yield "## Operators, sensor, trigger\n"
    yield "For DAGs of one's own, in `kafka_rescale.airflow`. Beside their own parameters they take those of the"
    yield "class that they are made from, as far as they don't set them themselves (`SnapshotOperator`: `job`).\n"
    yield table(("class, parameter", "default", ""), operators())


def _records() -> Iterator[str]:
    yield f"## The control topic `{CONTROL_TOPIC}`\n"
    yield "Compacted; one key per concern, values in JSON. Only Kafka Rescale may write to it.\n"
    keys = [
        (_key(concern), name_of(models[0]), documented(models[0]).summary) for concern, models in RECORDS.items()
    ]
    yield table(("key", "value", ""), keys)
    for models in RECORDS.values():
        for model in models:
            yield f"`{model.__name__}`\n"
            yield fields(model)


def _key(concern: Concern) -> str:
    return f"`<application>/{concern}`" if concern is not Concern.RESULT else f"`<application>/{concern}/<job>`"


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as directory:
        # Before the first import of airflow, which writes its configuration there.
        os.environ.setdefault("AIRFLOW_HOME", directory)
        for name, text in pages().items():
            (ROOT / "docs" / name).write_text(text)
            print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
