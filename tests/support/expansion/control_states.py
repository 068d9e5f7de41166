"""A state of the control topic, as a reader sees it when some records have been written."""

from __future__ import annotations

from kafka_rescale.core.control.records import Change, ControlRecords, changed, encoded
from kafka_rescale.core.control.state import ControlState

SEVERAL = {"results": "result", "rates": "rate", "history": "history"}


def after(state: ControlState, change: Change) -> ControlState:
    """Return the state with the change."""
    records = {str(key): encoded(value) for key, value in change.items()}
    return ControlRecords().state(changed(values_of(state), records))


def values_of(state: ControlState) -> dict[str, bytes]:
    """Return the values of the records that have this state, by key behind ``<application>/``."""
    values: dict[str, bytes | None] = {}
    for field in ControlState.model_fields:
        value = getattr(state, field)
        if field in SEVERAL:
            values |= {f"{SEVERAL[field]}/{detail}": encoded(each) for detail, each in value.items()}
        else:
            values[field.replace("_", "-")] = encoded(value or None)
    return {key: value for key, value in values.items() if value is not None}
