"""What the user's own commands or class answer before the expansion changes anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kafka_rescale.core.errors import Finding


@dataclass(frozen=True)
class Deployment:
    """The answers of a deployment; None if the question was not asked, or got no answer.

    :param unusable: commands that can't be called, a class that can't be made, a question without an answer.
    :param blue_runs: whether blue runs, as its deployment says.
    :param blue_members: how many members its group still has after some waiting, although the deployment says that
        blue is stopped.
    :param green_runs: whether the next generation runs, although it has not been started yet.
    """

    unusable: tuple[Finding, ...] = ()
    blue_runs: bool | None = None
    blue_members: int = 0
    green_runs: bool | None = None


NOT_ASKED = Deployment()


def standstill(deployment: Deployment, blue: str) -> Iterator[str]:
    """Yield a message if blue is stopped: nothing is processed until the expansion ends.

    :param blue: ``application.id`` of the running generation.
    """
    if deployment.blue_runs is False:
        yield (
            f"{blue} does not run: nothing is processed until the expansion starts the application at its end. "
            "Start it now, unless that is meant."
        )


def implausible(deployment: Deployment, blue: str, green: str) -> Iterator[Finding]:
    """Yield answers that hinder an expansion; without this check, some would show only after the promotion.

    A deployment that runs without members in its group is no finding: all of its threads may have died.

    :param blue: ``application.id`` of the running generation.
    :param green: ``application.id`` of the next generation.
    """
    yield from deployment.unusable
    if deployment.blue_runs is False and deployment.blue_members:
        yield Finding(
            f"lifecycle status of {blue}",
            f"stopped, while its group has members ({deployment.blue_members})",
            "an answer about the instances that are in the group",
            "Let `status` look at the instances of exactly {application_id}; members that died are gone after "
            "session.timeout.ms.",
        )
    if deployment.green_runs:
        yield Finding(
            f"lifecycle status of {green}",
            "running, before it has ever been started",
            "stopped (exit code 3)",
            "Let `status` look at the instances of exactly {application_id}; if there are some, stop them.",
        )
