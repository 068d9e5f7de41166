"""Objects that a user names: by ``module:name`` in an application file, by ``module.name`` in a connection."""

from __future__ import annotations

import importlib
from typing import Any

from kafka_rescale.core.errors import InvalidInput

RAISED = (Exception, SystemExit)
"""What code of the user may raise. A program that is called as a function often ends by ``SystemExit``, also after
a success; nothing that stands around such a call may be skipped by it."""


def named(setting: str, name: str, expected: str, *, may_quote: bool = True) -> Any:
    """Return the object that ``module:name`` or ``module.name`` names.

    :param setting: the field that names it, for the error.
    :param expected: what the object has to be, for the error.
    :param may_quote: whether the text of any error of its module may be told. Otherwise only the type is told,
        unless the module or the object is missing.
    :raises InvalidInput: the object can't be imported. Any error that its module raises ends in this error.
    """
    module_name, _, attribute = name.rpartition(":" if ":" in name else ".")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except RAISED as error:
        said_enough = isinstance(error, (ImportError, AttributeError))
        quotes = said_enough or may_quote
        said = f": {error}" if quotes else " when importing it"
        refused = InvalidInput(
            f"{setting} {name!r}",
            found=str(error) if said_enough else f"{type(error).__name__}{said}",
            expected=expected,
            remedy="Put its module on PYTHONPATH of the Airflow workers and of Spark's executors; it has to be "
            "importable there.",
        )
        # A traceback shows the cause too.
        raise refused from (error if quotes else None)
