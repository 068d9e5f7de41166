"""The producers of ``paused`` inputs: hold them while inputs are drained and grown, release them afterwards."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from kafka_rescale.core.application.commands import words
from kafka_rescale.core.application.generation_names import blue_names
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.topics import Input, InputPolicy, Producers
from kafka_rescale.core.control.journal import BLUE_STOPPED, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import InvalidInput, Outage, RescaleError, UnsafeState
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.lifecycle.factory import lifecycle_of, stop_in_time
from kafka_rescale.lifecycle.instance import Instance, Lifecycle
from kafka_rescale.lifecycle.programs import run
from kafka_rescale.operations.application.load import application_files, load_application
from kafka_rescale.operations.expansion.rescale import Rescale, running_instance

log = logging.getLogger(__name__)

AT_CUTOVER = (*BLUE_STOPPED, Phase.PROMOTED)
"""Phases of a producer's own expansion in which it must stay stopped. They end with its start."""


def upstream(application: Application) -> list[Application]:
    """Return the applications that are held as producers.

    :raises InvalidInput: an application has no file.
    """
    return [_application_named(p.application) for _, p in _declared(application) if p.application is not None]


def holder(connection: KafkaConnection, name: str) -> str:
    """Return the application whose cutover is about to stop an application as its producer; empty if none is.

    Only the application files of this machine can tell.
    """
    for application in _applications_that_mention(name):
        if any(producers.application == name for _, producers in _declared(application)):
            journal = ControlTopic(connection, application.application_id).read().journal
            if journal is not None and journal.phase is Phase.QUIESCING and not journal.stop_asked:
                return application.application_id
    return ""


def commands(application: Application) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands that hold and release producers, each as a name for errors and an argument vector."""
    for declared, producers in _declared(application):
        for name, command in producers.commands.items():
            yield f"{name} command of the producers of {declared.topic}", words(command, "producers'")


def expanding(connection: KafkaConnection, application: Application) -> tuple[str, ...]:
    """Return a line for each application that is to be held as a producer, and that is being expanded now.

    That is no hindrance before the cutover: it may have ended by then.
    """
    states = [
        (declared, producers.application, ControlTopic(connection, producers.application).read().journal)
        for declared, producers in _declared(application)
        if producers.application is not None
    ]
    return tuple(
        f"{name}, the producer of {declared.topic}: an expansion of it is in phase {journal.told}. The cutover "
        "holds it, and refuses while that goes on: let that expansion finish first."
        for declared, name, journal in states
        if journal is not None and journal.in_progress
    )


def assert_not_expanding(rescale: Rescale) -> None:
    """Check before the pause that no application that is to be held as a producer is being expanded itself.

    :raises UnsafeState: one is.
    """
    for _, producers in _declared(rescale.application):
        if producers.application is not None:
            _state_to_hold(rescale, producers.application)


def hold(rescale: Rescale, seconds_left: Callable[[], float]) -> None:
    """Stop the producers of every ``paused`` input.

    :param seconds_left: how long the pause may still last. A person is waited for no longer.
    :raises Outage: a command failed, or a person did not stop a producer in time.
    :raises UnsafeState: an application that writes the input is being rescaled itself.
    """
    for declared, producers in _declared(rescale.application):
        if producers.application is None:
            _run(producers, declared, "stop")
            continue
        state = _state_to_hold(rescale, producers.application)
        lifecycle, instance = _running(rescale, producers.application, state)
        stop_in_time(lifecycle, instance, seconds_left())
        # A classic group keeps a member after a clean close: the next start would wait for its session timeout.
        rescale.admin.remove_members(instance.application_id)


def release(rescale: Rescale) -> None:
    """Start the producers of every ``paused`` input again, even if others can't be started.

    :raises RescaleError: the first failure; the log has all of them.
    """
    failed: list[RescaleError] = []
    for declared, producers in _declared(rescale.application):
        try:
            _release(rescale, declared, producers)
        except RescaleError as error:
            log.error("going on with the other producers after: %s", error)
            failed.append(error)
    if failed:
        raise failed[0]


def _release(rescale: Rescale, declared: Input, producers: Producers) -> None:
    if producers.application is None:
        _run(producers, declared, "start")
        return
    state = ControlTopic(rescale.connection, producers.application).read()
    if state.journal is not None and state.journal.phase in AT_CUTOVER:
        # This producer's own expansion has begun since the producer was held.
        at = f"its own expansion is in phase {state.journal.phase}, and starts it at its end or rollback"
        log.warning("%s is not started: %s. Check afterwards that it runs.", producers.application, at)
        return
    lifecycle, instance = _running(rescale, producers.application, state)
    lifecycle.start(instance)


def _declared(application: Application) -> Iterator[tuple[Input, Producers]]:
    for declared in application.inputs:
        if declared.policy is InputPolicy.PAUSED and declared.producers is not None:
            yield declared, declared.producers


def _state_to_hold(rescale: Rescale, name: str) -> ControlState:
    """Return the control state of an application that is to be held.

    :raises UnsafeState: it is being expanded itself.
    """
    state = ControlTopic(rescale.connection, name).read()
    journal = state.journal
    if journal is not None and journal.in_progress:
        way_back = "" if journal.is_promoted else ", or roll it back"
        raise UnsafeState(
            f"application {name}",
            found=f"an expansion of it in phase {journal.told}",
            expected=f"no expansion while it is held as the producer of {rescale.application.application_id}",
            remedy=f"Let that expansion finish{way_back}; then trigger again.",
        )
    return state


def _running(rescale: Rescale, name: str, state: ControlState) -> tuple[Lifecycle, Instance]:
    """Return the running generation of another application of this cluster, and the lifecycle that starts it.

    :param state: the other application's control state.
    """
    application = _application_named(name)
    instance = running_instance(application, state.generations, _counts_set_by(application, rescale.admin))
    return lifecycle_of(application, lambda group: rescale.admin.describe_group(group).is_live), instance


def _counts_set_by(application: Application, admin: ClusterAdmin) -> list[int]:
    """Return the present counts of those first-generation topics whose counts its start command tells it."""
    names = blue_names(application, application.application_id)
    topics = [names.repartition(topic) for topic in application.repartitions_of_start_command]
    return [topic.partitions for topic in admin.describe_topics(topics).values()]


def _application_named(name: str) -> Application:
    for application in _applications_that_mention(name):
        if application.application_id == name:
            return application
    raise InvalidInput(
        "producers",
        found=f"application {name!r}, which has no application file that can be used",
        expected="the application_id of another application file",
        remedy="Correct the name, or give `stop:` and `start:` commands instead.",
    )


def _applications_that_mention(name: str) -> Iterator[Application]:
    # This runs within the pause. So if there are many files, parse only those that mention the name.
    for file in application_files(mentioning=name):
        try:
            application = load_application(file)
        except InvalidInput:
            continue
        yield application


def _run(producers: Producers, declared: Input, action: str) -> None:
    command = producers.commands[action]
    line = words(command, "producers'")
    code, output = run(line, producers.timeout_seconds, may_outlive=action == "start")
    if code:
        raise Outage(
            f"{action} command of the producers of {declared.topic}",
            found=f"exit code {code} ({output})",
            expected="0",
            remedy=f"Run it by hand: {command}",
        )
