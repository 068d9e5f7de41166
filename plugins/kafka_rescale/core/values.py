"""The values that the journal, the jobs and the control topic exchange."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A frozen value that goes to JSON and back; used for what the journal and the jobs exchange."""

    model_config = ConfigDict(frozen=True, extra="forbid")
