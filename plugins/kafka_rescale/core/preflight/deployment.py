"""What the user's own commands, or class, say before anything is touched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kafka_rescale.core.errors import Finding


@dataclass(frozen=True)
class Deployment:
    """What was asked, and the answers; None is a question that was not asked, or not answered.

    :param unusable: commands that can not be called, a class that can not be made, a question without an answer.
    :param blue_runs: whether it runs, as its deployment sees it.
    :param blue_members: members of its group after all waiting, where the deployment says that it is stopped.
    :param green_runs: whether the next generation runs, which nobody has started yet.
    """

    unusable: tuple[Finding, ...] = ()
    blue_runs: bool | None = None
    blue_members: int = 0
    green_runs: bool | None = None


NOT_ASKED = Deployment()


def standstill(deployment: Deployment, blue: str) -> Iterator[str]:
    """Yield that nothing is being processed as it is, which an expansion does not change before its end.

    :param blue: ``application.id`` of the running generation.
    """
    if deployment.blue_runs is False:
        yield (
            f"{blue} does not run: nothing is processed until the expansion starts the application at its end. "
            "Start it now, unless that is meant."
        )


def implausible(deployment: Deployment, blue: str, green: str) -> Iterator[Finding]:
    """Yield what hinders an expansion; found later, some of it would be found after the promotion.

    A deployment that runs without being in its group is none of it: so does one whose threads have all died.

    :param blue: ``application.id`` of the running generation.
    :param green: that of the next one.
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
