"""Writes the pages of docs/ that are made from the code: its fields, commands, DAGs, operators and records.

PYTHONPATH=plugins .venv/bin/python -m scripts.create_reference
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kafka_rescale.core.application.autoscaling import Bounds
from kafka_rescale.core.application.clients import DeclaredClient
from kafka_rescale.core.application.lifecycles import ManualLifecycle, PythonLifecycle, ShellLifecycle
from kafka_rescale.core.application.notifications import Notification
from kafka_rescale.core.application.pacing import Pacing
from kafka_rescale.core.application.pipeline import DeclaredBackfill, PipelineApplication
from kafka_rescale.core.application.snapshots import Snapshots, StoreSnapshot
from kafka_rescale.core.application.stores import Store
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.topics import Input, Output, Producers, Repartition, SubTopologySpec
from kafka_rescale.core.application.windows import CutoverWindows
from kafka_rescale.core.control.acceptances import Acceptance, Acceptances
from kafka_rescale.core.control.autoscaling import Autoscaling
from kafka_rescale.core.control.bridge import Bridge, ReplacedBridges
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.history import JobSpan, PastExpansion, Proven
from kafka_rescale.core.control.job_results import JobResult, Sign
from kafka_rescale.core.control.journal import Captured, Journal
from kafka_rescale.core.control.keys import CONTROL_TOPIC, Concern
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.pace import Instruction, Pace, Rate
from kafka_rescale.core.control.processing import ClientRecord, MovementRecord, Processing, ThreadRecord
from kafka_rescale.core.control.processors import PipelineProcessors, ProcessorCounts, SourceTopic
from kafka_rescale.core.control.switch import Switch
from kafka_rescale.core.plan.prediction import Prediction
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.core.verify.parts import ProofProgress
from kafka_rescale.core.verify.proof import Proof
from kafka_rescale.core.verify.report import Report
from kafka_rescale.core.verify.rolling_proof import RollingProof

from scripts.reference_of_dags import dags, run_in_order
from scripts.reference_of_models import documented, fields, name_of, table

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
    "cutover_windows": (CutoverWindows,),
    "pacing": (Pacing,),
    "notifications": (Notification,),
    "snapshots": (Snapshots, StoreSnapshot),
}
RECORDS: dict[Concern, tuple[type, ...]] = {
    Concern.LEASE: (Lease,),
    Concern.JOURNAL: (Journal, Captured),
    Concern.SWITCH: (Switch,),
    Concern.PACE: (Pace, Instruction),
    Concern.RATE: (Rate,),
    Concern.GENERATIONS: (Generations,),
    Concern.BRIDGE: (Bridge,),
    Concern.REPLACED: (ReplacedBridges,),
    Concern.AUTOSCALING: (Autoscaling,),
    Concern.PROCESSING: (Processing, ClientRecord, ThreadRecord, MovementRecord),
    Concern.PROCESSORS: (PipelineProcessors, ProcessorCounts, SourceTopic),
    Concern.RESULT: (JobResult,),
    Concern.SIGN: (Sign,),
    Concern.REPORT: (Report,),
    Concern.PROOF: (Proof, Fences),
    Concern.PROOF_PROGRESS: (ProofProgress,),
    Concern.ROLLING_PROOF: (RollingProof,),
    Concern.ACCEPTANCES: (Acceptances, Acceptance),
    Concern.HISTORY: (PastExpansion, JobSpan, Proven, Prediction),
}
OF_PIPELINES = (Concern.PROCESSING, Concern.PROCESSORS)


def pages() -> dict[str, str]:
    """Return the text of every page by the name of its file. The same code always gives the same text."""
    made = {
        "reference.md": ["# Reference: the application file\n", MADE, *_application(), *_pipeline()],
        "reference-dags.md": ["# Reference: commands and DAGs\n", MADE, *_commands(), *run_in_order(), *dags()],
        "reference-operators.md": ["# Reference: operators\n", MADE, *_operators()],
        "reference-records.md": ["# Reference: records of the control topic\n", MADE, *_records()],
        "reference-records-of-pipelines.md": [
            "# Reference: records of pipelines\n",
            MADE,
            *_fields_of(OF_PIPELINES),
        ],
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
    yield "### `backfill`\n"
    yield f"`{DeclaredBackfill.__name__}`: {documented(DeclaredBackfill).summary}\n"
    yield fields(DeclaredBackfill)
    yield "### `clients`\n"
    yield f"`{DeclaredClient.__name__}`: {documented(DeclaredClient).summary}\n"
    yield fields(DeclaredClient)


def _commands() -> Iterator[str]:
    from kafka_rescale.cli.app import app
    from typer.main import get_command

    root: Any = get_command(app)
    yield "## Commands\n"
    yield f"`python -m kafka_rescale COMMAND FILE`. {root.help}"
    codes = "0, 1 findings or unsafe state, 2 invalid input or refused, 3 outage, 4 an error in the program"
    yield f"Exit codes: {codes}.\n"
    rows = []
    options = {n: [p for p in c.params if p.param_type_name == "option"] for n, c in root.commands.items()}
    shared = set.intersection(*({o.name for o in of} for of in options.values()))
    for name, command in root.commands.items():
        told = [o for o in options[name] if o.name not in shared]
        rows.append((f"**`{name}`**", "", command.help))
        rows += [(f"`{o.opts[0]}`", _default(o.default), o.help or "") for o in told]
    every = [o for o in next(iter(options.values())) if o.name in shared - {"help"}]
    yield f"Every command has {'; '.join(f'`{o.opts[0]}`: {o.help}' for o in every)}\n"
    yield table(("command, option", "default", ""), rows)


def _default(value: object) -> str:
    return "" if value in {None, False, ""} else f"`{value}`"


def _operators() -> Iterator[str]:
    from scripts.reference_of_operators import operators

    yield "## Operators, sensor, trigger\n"
    yield "For DAGs of one's own, in `kafka_rescale.airflow`. Beside their own parameters they take those of the"
    yield "class that they are made from, as far as they don't set them themselves (`SnapshotOperator`: `job`)."
    yield "A failure that needs a person is not retried, unless the DAG or the task sets another `retry_policy`.\n"
    yield table(("class, parameter", "default", ""), operators())


def _records() -> Iterator[str]:
    yield f"## The control topic `{CONTROL_TOPIC}`\n"
    yield "Compacted; one key per concern, values in JSON. Only Kafka Rescale may write to it.\n"
    keys = [
        (_key(concern), name_of(models[0]), documented(models[0]).summary) for concern, models in RECORDS.items()
    ]
    yield table(("key", "value", ""), keys)
    yield "The fields of the records of pipelines have [a page of their own](reference-records-of-pipelines.md).\n"
    yield from _fields_of(concern for concern in RECORDS if concern not in OF_PIPELINES)


def _fields_of(concerns: Iterable[Concern]) -> Iterator[str]:
    for model in (model for concern in concerns for model in RECORDS[concern]):
        yield f"`{model.__name__}`\n"
        yield fields(model)


def _key(concern: Concern) -> str:
    jobs = dict.fromkeys((Concern.RESULT, Concern.RATE, Concern.SIGN), "/<job>")
    detail = {**jobs, Concern.HISTORY: "/<plan>-<attempt>"}.get(concern, "")
    return f"`<application>/{concern}{detail}`"


def main() -> None:
    """Write the pages."""
    with tempfile.TemporaryDirectory() as directory:
        # Set this before the first import of airflow: the import writes Airflow's configuration there.
        os.environ.setdefault("AIRFLOW_HOME", directory)
        for name, text in pages().items():
            (ROOT / "docs" / name).write_text(text)
            print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
