"""Exit codes of the commands."""

from __future__ import annotations

from kafka_rescale.core.errors import InvalidInput, Outage, Refused, RescaleError

PASSED, FINDINGS, REFUSED, OUTAGE, BROKEN = 0, 1, 2, 3, 4


def exit_code(error: RescaleError) -> int:
    """Return the exit code of an error."""
    if isinstance(error, Outage):
        return OUTAGE
    return REFUSED if isinstance(error, InvalidInput | Refused) else FINDINGS
