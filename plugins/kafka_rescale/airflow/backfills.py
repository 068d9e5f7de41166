"""Which generation of a pipeline a run is for: the generation at work, or a separate one for a past interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param

if TYPE_CHECKING:
    from airflow.sdk import Context

    from kafka_rescale.core.application.pipeline import PipelineApplication
    from kafka_rescale.core.processing.backfill import Backfill

START, END = "interval_start", "interval_end"
BACKFILL = "backfill"


def interval_params() -> dict[str, Param]:
    """Return the params by which a person asks for a past interval."""
    told = (
        "Empty: the run processes what has arrived. Otherwise it processes only this past interval again, in a "
        "generation "
    )
    return {
        name: Param(
            None,
            type=["null", "string"],
            format="date-time",
            title=title,
            section="Backfill",
            description_md=f"{told}of its own: see `backfill` in the application file.",
        )
        for name, title in ((START, "Start of the interval"), (END, "End of the interval, exclusive"))
    }


def generation_of(
    application: PipelineApplication, context: Context | Mapping[str, Any]
) -> tuple[PipelineApplication, Backfill | None]:
    """Return the application, and the backfill that a run is for; None if the run is not a backfill.

    For a backfill, the application has the id of the backfill's own generation.

    :raises Refused: The interval can't be processed again.
    """
    from kafka_rescale.core.pipeline.named import pipeline_named
    from kafka_rescale.core.processing.backfill import backfill_of

    interval = _interval(context)
    if interval is None:
        return application, None
    backfill = backfill_of(application, pipeline_named(application.pipeline).topology, *interval)
    generation = backfill.generation(application.application_id)
    return application.model_copy(update={"application_id": generation}), backfill


def _interval(context: Context | Mapping[str, Any]) -> tuple[str, str] | None:
    params = context.get("params") or {}
    start, end = params.get(START), params.get(END)
    if start or end:
        return start or "", end or ""
    run = context["dag_run"]
    if run.run_type != BACKFILL:
        return None
    return run.data_interval_start.isoformat(), run.data_interval_end.isoformat()
