"""Does an application file ask for something that is impossible with ``mode: in_place``?"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.application.mistakes import Mistake
from kafka_rescale.core.application.streams import Application, Mode
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.formats.changelog_formats import NOT_IN_PLACE

OTHER_MODE = "Declare `mode: blue_green`"


def in_place(application: Application) -> Iterator[Mistake]:
    """Yield declarations that an application file with ``mode: in_place`` must not have."""
    if application.mode is not Mode.IN_PLACE:
        return
    yield from _stores(application)
    for index, declared in enumerate(application.inputs):
        if declared.policy is InputPolicy.REPARTITIONED:
            yield Mistake(
                ("inputs", index, "policy"),
                f"repartitioned for {declared.topic} with mode in_place",
                "unkeyed, paused or fixed: in place, inputs grow as the other topics do",
                "Declare `policy: paused`, or `mode: blue_green` if the producers can't be held.",
            )
    if application.autoscaling_enabled:
        yield Mistake(
            ("partition.autoscaling.enabled",),
            "partition.autoscaling.enabled with mode in_place",
            "false: it acts on inputs that have grown, and in place these are refused",
            OTHER_MODE,
        )
    if application.green_names:
        yield Mistake(
            ("green_names",),
            "green_names with mode in_place",
            "the names that the topics have: they are kept",
            "Delete them; for a program with other names declare `mode: blue_green`.",
        )
    if getattr(application.lifecycle, "start_gated", None) is not None:
        yield Mistake(
            ("lifecycle", "start_gated"),
            "start_gated with mode in_place",
            "none: tasks keep their local state, so there is nothing to pre-warm",
            "Delete it, or declare `mode: blue_green`.",
        )
    if getattr(application.lifecycle, "start_held", None) is not None:
        yield Mistake(
            ("lifecycle", "start_held"),
            "start_held with mode in_place",
            "none: the application's own group has offsets, so nothing would be held",
            "Delete it, or declare `mode: blue_green`.",
        )


def _stores(application: Application) -> Iterator[Mistake]:
    for index, store in enumerate(application.stores):
        if store.type in NOT_IN_PLACE:
            yield Mistake(
                ("stores", index, "type"),
                f"the {store.type} store {store.name}, {NOT_IN_PLACE[store.type]}",
                "with mode in_place, stores that a tombstone cleans of the keys that move",
                f"{OTHER_MODE}, which builds the next generation beside the running one.",
            )
        elif store.changelog == "source":
            yield Mistake(
                ("stores", index, "changelog"),
                f"the table {store.name}, whose input serves as its changelog, with mode in_place",
                "stores with changelogs of their own",
                f"{OTHER_MODE}, which builds the next generation beside the running one.",
            )
        elif not store.is_logged:
            yield Mistake(
                ("stores", index, "changelog"),
                f"the store {store.name}, which has no changelog, with mode in_place",
                "stores with changelogs: tasks keep their local state, and only a tombstone in a changelog cleans "
                "it of the keys that move",
                f"{OTHER_MODE}, whose next generation begins without local state.",
            )
