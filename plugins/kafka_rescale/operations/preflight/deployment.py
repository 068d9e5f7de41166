"""Asks the user's own commands or class for their answers before the expansion changes anything."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from kafka_rescale.core.application.lifecycles import ManualLifecycle, ShellLifecycle
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.errors import Finding, RescaleError
from kafka_rescale.core.preflight.deployment import Deployment
from kafka_rescale.core.preflight.described import Described
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.lifecycle.factory import lifecycle_of
from kafka_rescale.lifecycle.instance import Instance, Lifecycle
from kafka_rescale.lifecycle.programs import hindrance
from kafka_rescale.lifecycle.shell import command_line
from kafka_rescale.operations.expansion import producers
from kafka_rescale.operations.expansion.rescale import running_instance

log = logging.getLogger(__name__)

SETTLE_SECONDS = 60.0
"""A group keeps dead members until their session times out, after 45 s by default. Expanding a dead application
is allowed."""
_POLL_SECONDS = 1.0


def deployment_of(described: Described, admin: ClusterAdmin, upstream: Iterable[Application]) -> Deployment:
    """Return the deployment's answers about both generations, without starting or stopping any instance.

    While an expansion is in progress, either generation may be starting or stopping. So then this checks only
    whether the commands can be run.

    :param upstream: the applications that are held as producers.
    """
    application, journal = described.application, described.control.journal
    told = application.repartitions_of_start_command
    counts = [count for topic, count in described.enforced_now.items() if topic in told]
    blue = running_instance(application, described.control.generations, counts)
    unusable = [*_of_lifecycle(application, blue), *_of_producers(application, upstream)]
    in_progress = journal is not None and journal.in_progress
    if in_progress or not _can_answer(application, blue):
        return Deployment(tuple(unusable))
    answers = _answers(described, lifecycle_of(application, lambda _: False), admin, blue)
    return replace(answers, unusable=(*unusable, *answers.unusable))


def _can_answer(application: Application, instance: Instance) -> bool:
    """Whether `status` can be called. Then its answer is reported together with findings about other commands."""
    spec = application.lifecycle
    if isinstance(spec, ShellLifecycle):
        return not hindrance(command_line(spec.status, instance))
    return not isinstance(spec, ManualLifecycle) and not any(_of_lifecycle(application, instance))


def _of_lifecycle(application: Application, instance: Instance) -> Iterator[Finding]:
    """Yield commands whose programs can't be run here, or a class that can't be made."""
    spec = application.lifecycle
    if isinstance(spec, ShellLifecycle):
        for name, template in spec.commands.items():
            what = f"lifecycle command {name} of {application.application_id}"
            yield from _hindered(what, command_line(template, instance))
        return
    try:
        lifecycle_of(application, lambda _: False)
    except RescaleError as error:
        yield Finding.of(error.complaint)


def _of_producers(application: Application, upstream: Iterable[Application]) -> Iterator[Finding]:
    for what, command in producers.commands(application):
        yield from _hindered(what, command)
    for other in upstream:
        yield from _of_lifecycle(other, running_instance(other, None))


def _hindered(what: str, command: list[str]) -> Iterator[Finding]:
    if found := hindrance(command):
        yield Finding(
            what,
            found,
            "a program that can be run where Airflow's tasks run",
            "Correct its path, which is relative to KAFKA_RESCALE_HOME; a script needs `chmod +x` and a first "
            "line such as #!/bin/sh.",
        )


def _answers(described: Described, lifecycle: Lifecycle, admin: ClusterAdmin, blue: Instance) -> Deployment:
    try:
        runs, members = _settled(lifecycle, admin, blue)
        green = _green(described, blue)
        green_runs = lifecycle.is_running(green) if green.application_id != blue.application_id else None
    except RescaleError as error:
        return Deployment((Finding.of(error.complaint),))
    return Deployment((), runs, members, green_runs)


def _settled(lifecycle: Lifecycle, admin: ClusterAdmin, blue: Instance) -> tuple[bool, int]:
    """Return the answer about blue, and how many members of its group still contradict it after a wait."""
    deadline = time.monotonic() + SETTLE_SECONDS
    told = False
    while True:
        runs = lifecycle.is_running(blue)
        members = 0 if runs else len(admin.describe_group(blue.application_id).members)
        if not members or time.monotonic() >= deadline:
            return runs, members
        if not told:
            log.info("%s is stopped; waiting until its group's %s members are gone", blue.application_id, members)
        told = True
        time.sleep(_POLL_SECONDS)


def _green(described: Described, blue: Instance) -> Instance:
    return replace(
        blue,
        application_id=described.green,
        generation=described.generation,
        partitions=described.target,
        inputs={**blue.inputs, **described.successors()},
    )
