"""Tables of pydantic models, as their annotations and docstrings describe them."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kafka_rescale.core.application.streams import Mode
from pydantic import BaseModel
from pydantic.fields import FieldInfo

NOTES = {
    "Application.runtime": "for `spark` there is another file, see below",
    "Application.mode": "a next generation beside the running one, or growth while the application is stopped",
    "Application.inputs": "the topics that the application reads and others write",
    "Application.outputs": "the topics that it writes and others read",
    "Application.subtopologies": "instead of `topology`",
    "Application.stores": "every store of the topology",
    "Application.repartitions": "those whose count the program sets, or with a partitioner of their own",
    "Application.lifecycle": "how its instances are started and stopped",
    "Application.on_partition_expansion": "`module:function`, called with `(old, new)` once it is verified",
    "Application.autoscaling_bounds": "what autoscaling may do unattended",
    "PipelineApplication.runtime": "this one",
    "Input.policy": "what its producers may be asked to do",
    "Input.partitioner": "what its producers use",
    "Input.producers": "for `paused`, how they are held and released",
    "Output.topic": "its name",
    "Output.partitions": "lets it grow",
    "Store.name": "as in the topology",
    "Store.type": "see [store types](application-file.md#store-types); required, except with `changelog: none`",
    "Store.partitioner": "what has decided the partition of its keys",
    "Store.changelog": "`own`: a topic of its own; `source`: the topic that it is read from serves as its "
    "changelog; `none`: the program does not log it, so nothing of it is copied",
    "Repartition.name": "without `-repartition`",
    "Repartition.count": "`start_command`: the program sets it from `{partitions}`; `fixed`: it sets a constant; "
    "`derived`: it does not set it, so Kafka Streams derives it from the sources; `joined`: it does not set it "
    "either, and joins the topic with another source of the same sub-topology, whose count the topic gets. After "
    "`KStream#merge`, which looks alike in the topology, the topic keeps its derived count",
    "Repartition.partitioner": "what decides the partition of its keys",
    "SubTopologySpec.sources": "topics that it reads",
    "SubTopologySpec.stores": "its stores",
    "SubTopologySpec.sinks": "topics that it writes",
    "ShellLifecycle.type": "commands",
    "ShellLifecycle.start": "returns when they are started",
    "ShellLifecycle.start_gated": "as `start`, behind the warm-up gate",
    "ShellLifecycle.start_held": "as `start`, behind the hold gate",
    "ShellLifecycle.stop": "returns when all instances have ended",
    "ShellLifecycle.status": "exit code 0 runs, 3 is stopped",
    "ShellLifecycle.timeout_seconds": "for each command",
    "PythonLifecycle.type": "a class",
    "PythonLifecycle.callable": "`module:Name`",
    "ManualLifecycle.type": "a person",
    "ManualLifecycle.instructions": "shown in the log of the task that waits",
    "ManualLifecycle.start_gated": "instructions for the start behind the warm-up gate",
    "ManualLifecycle.start_held": "instructions for the start behind the hold gate",
    "ManualLifecycle.timeout_seconds": "how long the task waits for the person",
    "StoreSnapshot.name": "of a declared store",
    "Snapshots.start_date": "the first day",
}
"""Descriptions of fields that their model's docstring does not describe, because their names say enough there."""

LONGEST_DEFAULT = 60


@dataclass(frozen=True)
class Documented:
    """A docstring in parts.

    :param summary: its first paragraph.
    :param params: text by parameter.
    """

    summary: str
    params: dict[str, str]


def documented(thing: type) -> Documented:
    """Take a docstring apart, as Markdown."""
    text = inspect.getdoc(thing) if "__doc__" in vars(thing) and thing.__doc__ else ""
    parts = re.split(r"^:(\w+)(?: (\w+))?:", text or "", flags=re.MULTILINE)
    named = zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    return Documented(
        summary=_plain(parts[0].strip().split("\n\n")[0]),
        params={name: _plain(body.split("\n\n")[0]) for kind, name, body in named if kind == "param"},
    )


def _plain(text: str) -> str:
    return re.sub(r":class:`~?[\w.]*?(\w+)`", r"`\1`", re.sub(r"\s+", " ", text).strip().replace("``", "`"))


def fields(model: type[BaseModel]) -> str:
    """Return a table of a model's fields."""
    said = descriptions(model)
    rows = [
        (f"`{field.alias or name}`", _type(field), _default(field), said.get(name, ""))
        for name, field in model.model_fields.items()
    ]
    return table(("field", "type", "default", ""), rows)


def undescribed(model: type[BaseModel]) -> list[str]:
    """Return the fields without a description."""
    said = descriptions(model)
    return [name for name in model.model_fields if name not in said]


def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return the description of each field. A model's own description replaces that of its base."""
    said: dict[str, str] = {}
    for each in reversed(model.__mro__):
        notes = {name: text for name, text in NOTES.items() if name.startswith(f"{each.__name__}.")}
        said |= {name.partition(".")[2]: text for name, text in notes.items()} | documented(each).params
    return said


def name_of(annotation: Any) -> str:
    """Return a type as a reader of YAML or JSON knows it."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(f"`{member.value}`" for member in annotation)
    if origin is None:
        return str(getattr(annotation, "__name__", annotation))
    return _joined(origin, [name_of(a) for a in arguments if a not in {type(None), Ellipsis} and _is_type(a)])


def _is_type(argument: Any) -> bool:
    """Whether an argument is a type. What `Annotated` adds is no type; the table shows it beside the type."""
    return isinstance(argument, type) or typing.get_origin(argument) is not None


def _joined(origin: Any, names: list[str]) -> str:
    if origin is tuple:
        return f"list of {names[0]}" if len(names) == 1 else " and ".join(names)
    if origin is dict:
        return " → ".join(names)
    return ", ".join(names)


def _type(field: FieldInfo) -> str:
    bounds = [(getattr(m, "ge", None), getattr(m, "le", None)) for m in field.metadata]
    least = [f"from {ge}" for ge, _ in bounds if ge is not None]
    most = [f"to {le}" for _, le in bounds if le is not None]
    return " ".join([name_of(field.annotation), *least, *most])


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel) or value in (None, (), {}, ""):
        return ""
    if isinstance(value, tuple):
        return ", ".join(f"`{each}`" for each in value)
    shown = str(value).lower() if isinstance(value, bool | Mode) else str(value)
    return f"`{shown[:LONGEST_DEFAULT]}`"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines) + "\n"
