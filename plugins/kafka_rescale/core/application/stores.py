"""A state store as an application file declares it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from kafka_rescale.core.application.fields import Name, Strict, checked
from kafka_rescale.core.application.mistakes import WrongValue
from kafka_rescale.core.formats.changelog_formats import PROCESSOR, ChangelogFormat, format_of
from kafka_rescale.core.formats.key_layouts import layout_named
from kafka_rescale.core.partitioning.partitioners import partitioner_named

NONE = "none"


class Store(Strict):
    """A state store as the topology names it.

    With ``topology.optimization``, a table that is read from a topic has ``changelog: source``: the topic itself
    serves as its changelog, and can't be rewritten. A store without logging (``withLoggingDisabled()``) has
    ``changelog: none``, and no other field but its name: nothing of it is copied.

    :param partitioning_key: for a Processor-API store, the part of its keys that is the key of the source records:
        ``whole``, ``drop-last-N``, ``first-N`` (bytes) or ``module:function``.
    """

    name: Name
    changelog: Literal["own", "source", "none"] = "own"
    type: str = Field(default="", validate_default=True)
    partitioning_key: str = Field(default="", validate_default=True)
    partitioner: str = "murmur2"

    @field_validator("type")
    @classmethod
    def _known_type(cls, value: str, info: ValidationInfo) -> str:
        if _is_unlogged(value, info):
            return value
        if not value:
            raise WrongValue(
                found="nothing",
                expected="the type of the store, which says where the keys of its changelog belong",
                remedy="Add `type:`. If the program does not log the store, add `changelog: none` instead.",
            )
        return value if value == PROCESSOR else checked(value, format_of)

    @field_validator("partitioning_key")
    @classmethod
    def _extractor(cls, value: str, info: ValidationInfo) -> str:
        if _is_unlogged(value, info):
            return value
        kind = info.data.get("type", "")
        if kind == PROCESSOR:
            return checked(value, layout_named)
        if value and kind:
            raise WrongValue(
                found=f"{value!r} for a store of type {kind}",
                expected=f"this field with type {PROCESSOR} only",
                remedy=f"Delete it: where {kind} stores have the partitioning key is known.",
            )
        return value

    @property
    def format(self) -> ChangelogFormat:
        """How it writes its changelog."""
        return format_of(self.type, self.partitioning_key)

    @field_validator("partitioner")
    @classmethod
    def _known_partitioner(cls, value: str, info: ValidationInfo) -> str:
        return value if _is_unlogged(value, info) else checked(value, partitioner_named)

    @property
    def is_logged(self) -> bool:
        """Whether a topic can restore it: a changelog, or the topic that it is read from."""
        return self.changelog != NONE


def _is_unlogged(value: str, info: ValidationInfo) -> bool:
    """Whether a field is one of a store without logging.

    :raises WrongValue: the field has a value, although nothing of such a store is copied.
    """
    if info.data.get("changelog") != NONE:
        return False
    if value:
        raise WrongValue(
            found=f"{value!r} for a store with `changelog: none`",
            expected="no other field than `name` and `changelog`: nothing of such a store is copied",
            remedy="Delete it; if the program logs the store, delete `changelog: none` instead.",
        )
    return True
