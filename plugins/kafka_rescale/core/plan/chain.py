"""Chains of applications: an output topic of one is an input of another, so the most downstream is expanded first.

The application that reads a topic grows it at its own cutover; the application that writes it only follows. A
writer works with more partitions than it has tasks, but a reader dies of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.plan.shared_inputs import read_as


@dataclass(frozen=True)
class ChainRun:
    """A run of a chain, which expands the readers of an application before the application itself.

    :param target: partitions that all members are expanded to; None if each has the count of its own file.
    """

    target: int | None = None

    def target_of(self, member: Application) -> int:
        """Return the number of partitions that the run expands a member to."""
        return self.target or member.partitions


def expansion_order(chain: str, applications: Sequence[Application]) -> tuple[Application, ...]:
    """Return the applications of a chain, the most downstream first; equals are ordered by name.

    :param chain: name of the chain, for the error.
    :raises InvalidInput: an application is connected to no other application, or they feed each other in a circle.
    """
    by_id = {a.application_id: a for a in sorted(applications, key=lambda a: a.application_id)}
    below = {name: {reader for reader in by_id if _feeds(by_id[name], by_id[reader])} for name in by_id}
    for name in by_id:
        if len(by_id) > 1 and not below[name] and not any(name in readers for readers in below.values()):
            raise InvalidInput(
                f"chain {chain!r}",
                found=f"application {name}, which shares no topic with {', '.join(n for n in by_id if n != name)}",
                expected="applications that are connected: an output topic of one is an input of another",
                remedy="List the topic under `outputs:` of the one and `inputs:` of the other, or leave it out.",
            )
    try:
        return tuple(by_id[name] for name in TopologicalSorter(below).static_order())
    except CycleError as error:
        circle = " → ".join(reversed(error.args[1]))
        raise InvalidInput(
            f"chain {chain!r}",
            found=f"applications that feed each other: {circle}",
            expected="a most downstream application to begin with",
            remedy="Take one of them out of the chain and expand it by itself.",
        ) from None


def may_belong(text: str, chain: str) -> bool:
    """Return whether a file that can't be used may belong to a member of a chain, judging by its text.

    It doesn't if the text names another chain. A text that names no chain may belong to the chain: the rest of the
    file may not be written yet.
    """
    named = re.findall(r"^chain:[ \t]*[\"']?([^\s\"'#]+)", text, re.MULTILINE)
    return not named or chain in named


def _feeds(writer: Application, reader: Application) -> bool:
    return writer is not reader and any(read_as(reader, output.topic) for output in writer.outputs)
