"""The fields with which a run was triggered. Airflow takes any, and passes over those that a DAG does not know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_rescale.airflow.runs import owner_of
from kafka_rescale.core.errors import InvalidInput

if TYPE_CHECKING:
    from airflow.sdk import Context

OF_AIRFLOW = frozenset({"openlineage"})
"""What Airflow's TriggerDagRunOperator adds by itself."""


def require_known_fields(context: Context) -> None:
    """Refuse a run that was triggered with a field that its DAG does not have, or whose fields Airflow ignores.

    Otherwise a run that shall be dry, with a misspelt field, would be a real one. This is for the first task of a
    DAG: what ends a pause must begin, whatever the fields of its run are. So no rollback has it either.

    :raises InvalidInput: there is such a field.
    """
    run, given = f"run {owner_of(context)}", context["dag_run"].conf or {}
    fields, counts = context["dag"].params, context["params"]
    if unknown := sorted(given.keys() - fields.keys() - OF_AIRFLOW):
        raise InvalidInput(
            run,
            found=f"{_named(unknown)}, which the form of its DAG does not have",
            expected=f"only fields of its form: {_named(fields)}",
            remedy="Nothing has been touched. Trigger it again with the right names.",
        )
    if ignored := {name: given[name] for name in fields if name in given and given[name] != counts[name]}:
        told = ", ".join(f"`{name}` = {value!r}" for name, value in ignored.items())
        raise InvalidInput(
            run,
            found=f"{told}, which this Airflow ignores",
            expected="`[core] dag_run_conf_overrides_params` = True, which is Airflow's default",
            remedy="Nothing has been touched. Correct Airflow's configuration, then trigger it again.",
        )


def _named(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
