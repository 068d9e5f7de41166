"""The daily snapshots of an application's stores, as its file declares them."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import Field, field_validator

from kafka_rescale.core.application.fields import Name, Strict, WholeNumber, checked, place
from kafka_rescale.core.formats.serdes import NONE, serde_named

SerdeName = Annotated[str, Field(max_length=100_000)]


def _usable(text: str) -> None:
    serde_named(text).check()


class StoreSnapshot(Strict):
    """How one store's bytes are read.

    :param key: serde of the partitioning key; for a windowed store, of the key without its times.
    :param value: serde of the value.
    :param window_size_ms: size of a windowed store's windows. Its changelog has only the starts of windows.
    """

    name: Name
    key: SerdeName = NONE
    value: SerdeName = NONE
    window_size_ms: WholeNumber | None = Field(default=None, ge=1)

    @field_validator("key", "value")
    @classmethod
    def _known_serde(cls, value: str) -> str:
        return checked(value, _usable)


class Snapshots(Strict):
    """Which snapshots are taken, and where they go.

    :param location: an absolute path or a URI that Arrow can write to. Every Spark executor must see the same.
    :param stores: serdes by store; a store that isn't listed is written as bytes.
    :param grace_minutes: by how many minutes records of one changelog partition may be out of order.
    :param keep_days: days older than this, counted from the newest, are deleted; by default no day is deleted.
    :param catchup: whether the days since ``start_date`` are built when the DAG is switched on.
    :param compaction_lag_since: a day (UTC). Since its beginning, the changelogs' `min.compaction.lag.ms` was
        never shorter than now. With this field, more days can be told exactly.
    :param max_wait_seconds: how long to wait until the application has processed all input records of the day.
    """

    location: str
    stores: tuple[StoreSnapshot, ...] = ()
    grace_minutes: WholeNumber = Field(default=60, ge=0)
    keep_days: WholeNumber | None = Field(default=None, ge=1)
    catchup: bool = False
    start_date: date | None = None
    compaction_lag_since: date | None = None
    max_wait_seconds: WholeNumber = Field(default=600, ge=0)

    @field_validator("location")
    @classmethod
    def _place(cls, value: str) -> str:
        return place(value)

    def store_named(self, name: str) -> StoreSnapshot:
        """Return how a store is read."""
        return next((s for s in self.stores if s.name == name), StoreSnapshot(name=name))
