"""Can the commands of an application file be called, and do they differ between generations?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kafka_rescale.core.application.commands import filled, words
from kafka_rescale.core.application.instance import Instance
from kafka_rescale.core.application.lifecycles import STARTS, ShellLifecycle
from kafka_rescale.core.application.mistakes import Location, Mistake
from kafka_rescale.core.application.streams import Application, Mode
from kafka_rescale.core.errors import InvalidInput


def lifecycle_commands(application: Application) -> Iterator[Mistake]:
    """Yield the mistakes of lifecycle commands.

    A command may be impossible to call. Or it is the same for both generations, although it has to differ.
    """
    if not isinstance(application.lifecycle, ShellLifecycle):
        return
    blue, green = _generation(application, 1), _generation(application, 2)
    start = application.lifecycle.start
    has_gates = application.mode is Mode.BLUE_GREEN and _unusable(("lifecycle", "start"), start, blue) is None
    for name, template in application.lifecycle.commands.items():
        place = ("lifecycle", name)
        unusable = _unusable(place, template, blue)
        if unusable is not None:
            yield unusable
            continue
        if application.mode is Mode.BLUE_GREEN and filled(template, blue) == filled(template, green):
            yield _same_for_both(place, name)
        if name in STARTS:
            yield from _untold(application, place, template, green)
            yield from _told_otherwise(start, place, template, green) if has_gates else ()


def producer_commands(application: Application) -> Iterator[Mistake]:
    """Yield the commands for producers that can't be called."""
    for index, declared in enumerate(application.inputs):
        commands = declared.producers.commands if declared.producers else {}
        for name, command in commands.items():
            place = ("inputs", index, "producers", name)
            unusable = _unusable(place, command)
            if unusable is not None:
                yield unusable


def _generation(application: Application, number: int) -> Instance:
    """Return an example of a generation. Only the names in it depend on its number."""
    name = application.application_id if number == 1 else f"{application.application_id}-g{number}"
    inputs = {i.topic: i.topic for i in application.inputs}
    return Instance(name, number, application.partitions, inputs, application.internal_prefix(name))


def _unusable(place: Location, command: str, instance: Instance | None = None) -> Mistake | None:
    """Return why a command can't be called.

    :param instance: fills the placeholders; None if the command has no placeholders.
    """
    try:
        words(command if instance is None else filled(command, instance))
    except InvalidInput as error:
        return Mistake.of(place, error.complaint)
    return None


def _same_for_both(place: Location, name: str) -> Mistake:
    return Mistake(
        place,
        f"no {{application_id}} in the {name} command",
        "a command that names its generation: both exist side by side, each with its own application.id",
        "Let the command take the application.id from {application_id}. If the command uses another name for each "
        "generation, {generation} is enough.",
    )


def _untold(application: Application, place: Location, template: str, instance: Instance) -> Iterator[Mistake]:
    """Yield the placeholders that the program needs and that a start command lacks."""

    def tells(**changed: object) -> bool:
        return _tells(template, instance, **changed)

    if application.repartitions_of_start_command and not tells(partitions=instance.partitions + 1):
        enforced = next(r.name for r in application.repartitions if r.count == "start_command")
        yield Mistake(
            place,
            f"no {{partitions}} in the {place[-1]} command",
            f"the count of {enforced}, which is declared with `count: start_command`",
            "Let the program set withNumberOfPartitions from {partitions}. Or declare `count: fixed` if it sets a "
            "constant, and `count: derived` if it sets none.",
        )
    if application.internal_topic_prefix is not None and not tells(internal_topic_prefix="another"):
        yield Mistake(
            place,
            f"no {{internal_topic_prefix}} in the {place[-1]} command",
            "the prefix of each generation's own internal topics",
            "Let the program set __internal.override.topic.prefix__ from {internal_topic_prefix}. Without it, "
            "both generations write the same topics.",
        )


def _told_otherwise(start: str, place: Location, template: str, instance: Instance) -> Iterator[Mistake]:
    """Yield what ``start`` tells the program and another start command does not.

    Behind a gate, the program would then be another one than the one that is meant: it would fail for that after
    the promotion, when it is let in.
    """
    others: dict[str, object] = {
        "partitions": instance.partitions + 1,
        "internal_topic_prefix": "another",
        "inputs": {topic: "another" for topic in instance.inputs},
    }
    for name, value in others.items():
        if _tells(start, instance, **{name: value}) and not _tells(template, instance, **{name: value}):
            placeholder = "{input:NAME}" if name == "inputs" else f"{{{name}}}"
            yield Mistake(
                place,
                f"no {placeholder} in the {place[-1]} command",
                "everything that the start command tells the program",
                f"Take over {placeholder} from `start`: behind a gate, the program has to be the same.",
            )


def starts_with_count(application: Application) -> tuple[str, ...]:
    """Return the names of the start commands that tell the program ``{partitions}``; empty without commands."""
    if not isinstance(application.lifecycle, ShellLifecycle):
        return ()
    green, commands = _generation(application, 2), application.lifecycle.commands
    more = {"partitions": green.partitions + 1}
    return tuple(name for name in STARTS if name in commands and _tells(commands[name], green, **more))


def _tells(template: str, instance: Instance, **changed: object) -> bool:
    """Return whether a command differs with something else about the instance."""
    return filled(template, instance) != filled(template, replace(instance, **changed))  # type: ignore[arg-type]
