"""The pipeline that an application file names."""

from __future__ import annotations

from kafka_rescale.core.callables import named
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.builder import Pipeline

EXPECTED = "a pipeline (what StreamsBuilder#build returns), or a function without arguments that returns one"


def pipeline_named(name: str) -> Pipeline:
    """Return the pipeline that ``module:name`` is, or returns.

    :raises InvalidInput: it can't be imported, or is something else.
    """
    found = named("pipeline", name, EXPECTED)
    if not isinstance(found, Pipeline) and callable(found):
        found = found()
    if isinstance(found, Pipeline):
        return found
    raise InvalidInput(
        f"pipeline {name!r}",
        found=f"a {type(found).__name__}",
        expected=EXPECTED,
        remedy="Name the pipeline that the module builds, or its function.",
    )
