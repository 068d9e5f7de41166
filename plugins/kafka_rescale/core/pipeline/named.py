"""The pipeline that an application file names."""

from __future__ import annotations

from collections.abc import Callable

from kafka_rescale.core.callables import RAISED, named
from kafka_rescale.core.errors import InvalidInput, RescaleError
from kafka_rescale.core.pipeline.builder import Pipeline

EXPECTED = "a pipeline as StreamsBuilder#build returns it, or a function without arguments that returns a pipeline"


def pipeline_named(name: str) -> Pipeline:
    """Return the pipeline that ``module:name`` names. ``name`` may also be a function that returns the pipeline.

    :raises InvalidInput: the name can't be imported, it names neither a pipeline nor such a function, or the
        function fails.
    """
    found = named("pipeline", name, EXPECTED)
    if not isinstance(found, Pipeline) and callable(found):
        found = _built_by(found, name)
    if isinstance(found, Pipeline):
        return found
    raise InvalidInput(
        f"pipeline {name!r}",
        found=f"a {type(found).__name__}",
        expected=EXPECTED,
        remedy="Name the pipeline that the module builds, or the function that returns the pipeline.",
    )


def _built_by(function: Callable[[], object], name: str) -> object:
    try:
        return function()
    except RescaleError:
        raise
    except RAISED as error:
        raise InvalidInput(
            f"pipeline {name!r}",
            found=f"{type(error).__name__}: {error}",
            expected=EXPECTED,
            remedy="Mend the function. It is called wherever the application file is read.",
        ) from error
