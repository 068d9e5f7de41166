"""The messages of autoscaling to a user: what was found, what was expected, and what to do."""

from __future__ import annotations

from kafka_rescale.core.application.streams import Application, Mode
from kafka_rescale.core.autoscaling.parallelism import Observed
from kafka_rescale.core.errors import Refused


def described(observed: Observed) -> str:
    """Return a sentence about the topics that have grown or have to grow. It changes only if their counts do."""
    inputs = [f"{topic} has {now} partitions, {known} known" for topic, (known, now) in observed.grown.items()]
    return "; ".join([*inputs, *map(str, observed.too_few)])


def switched_off(application: Application, observed: Observed) -> Refused:
    """Return the error of an application that has to grow and that isn't scaled automatically.

    Kafka Streams logs this error and shuts down, if the feature is off (KIP-878). An expansion in place refuses
    inputs that have grown, so in this mode the remedy is the other mode.
    """
    name = application.application_id
    target = observed.target or max(m.expected for m in observed.too_few)
    way_on = (
        f"Trigger expand_{name} with target {target}, or declare `partition.autoscaling.enabled: true` "
        "to have that done."
    )
    if application.mode is Mode.IN_PLACE:
        way_on = (
            f"Mode {application.mode} refuses inputs that were grown by hand. Declare `mode: blue_green`, and "
            f"trigger expand_{name} with target {target}: preflight says if that needs another policy of the "
            "input. In place, let the expansion itself grow the inputs."
        )
    return Refused(
        f"application {observed.running} (INCOMPLETE_SOURCE_TOPIC_METADATA)",
        found=described(observed),
        expected="internal topics that follow from the inputs: Kafka Streams shuts down at its next rebalance",
        remedy=f"{way_on} This is said once.",
    )


def over_partitioned(observed: Observed) -> Refused:
    """Return the error of internal topics with too many partitions. A user has to act: no topic can shrink."""
    return Refused(
        f"application {observed.running}",
        found="; ".join(map(str, observed.too_many)),
        expected="no more partitions than follow from the inputs: a topic can't shrink",
        remedy="If the program sets a count (withNumberOfPartitions), declare it in `repartitions:`: `count: "
        "start_command` if it takes the count from {partitions}, `count: fixed` if it sets a constant. If an "
        "internal topic was grown by hand, grow the inputs alike and reset the application. This is said once.",
    )


def out_of_bounds(application: Application, observed: Observed) -> Refused:
    """Return the error of a growth beyond ``maximum_partitions``."""
    name, maximum = application.application_id, application.autoscaling_bounds.maximum_partitions
    return Refused(
        f"application {observed.running}",
        found=described(observed),
        expected=f"at most {maximum} partitions (autoscaling_bounds.maximum_partitions)",
        remedy=f"Trigger expand_{name} with target {observed.target} yourself, or raise the bound. "
        "This is said once.",
    )


def would_shrink(application: Application, observed: Observed) -> Refused:
    """Return the error of a target that would shrink other sub-topologies. No user has asked for this."""
    name, most = application.application_id, max(p.current for p in observed.shrinking)
    fewer = ", ".join(f"sub-topology {p.subtopology} from {p.current}" for p in observed.shrinking)
    return Refused(
        f"application {observed.running}",
        found=f"{described(observed)}; the target of {observed.target} would shrink {fewer}",
        expected="growth that leaves no sub-topology with fewer tasks",
        remedy=f"Trigger expand_{name} with target {most}, or with {observed.target} if that shall shrink. "
        "This is said once.",
    )


def not_told(observed: Observed) -> Refused:
    """Return the error of unexplained counts: an input has grown, or the program sets a count."""
    return Refused(
        f"application {observed.running}",
        found=f"{', '.join(map(str, observed.too_few))}, and no earlier look with every count in line",
        expected="something that tells an input that has grown from a count that the program sets",
        remedy="In `repartitions:`, declare `count: derived` if the program sets no count and an input has grown. "
        "Then the application is expanded, although nothing is in the new partitions. Declare `count: "
        "start_command` if the program sets the count (withNumberOfPartitions) from {partitions}, and `count: "
        "fixed` if it sets a constant. A first record in a new partition of an input also shows that the input "
        "has grown. This is said once.",
    )


def asks_again(application: Application) -> str:
    """Return what autoscaling does after a person has ended an expansion; empty if it is off."""
    if not application.autoscaling_enabled:
        return ""
    return (
        f"Autoscaling is on: watch_{application.application_id} asks for it again within 2 minutes, and then "
        "waits for approval. Pause the watch to stop that."
    )


def unproven(observed: Observed) -> str:
    """Return why a person has to approve an expansion whose only evidence is the count of a repartition topic."""
    return (
        f"only the count of {', '.join(observed.unproven)} shows the growth. If the program sets this count "
        "itself (withNumberOfPartitions), no generation can start after the promotion. Declare `count: derived`, "
        "`start_command` or `fixed` in `repartitions:`, or `start_gated` in `lifecycle:`"
    )


def waits_while_down(application: Application, observed: Observed, why: str) -> Refused:
    """Return the error of an application that processes nothing while the watch waits.

    :param why: the reason why the watch waits. The words have to stay the same from look to look.
    """
    name = application.application_id
    return Refused(
        f"application {observed.running}, which is down",
        found=", ".join(filter(None, [why, described(observed)])),
        expected=f"members of its group {observed.running}: its inputs are not processed",
        remedy=f"Don't wait: look at what is said here, and trigger expand_{name} yourself"
        f"{f' with target {observed.target}' if observed.target else ''}. This is said once.",
    )


def gave_up(application: Application, target: int) -> str:
    """Return the message that autoscaling has given up, and how it begins again."""
    return (
        f"gave up expanding {application.application_id} to {target} partitions: nothing has succeeded for "
        f"partition.autoscaling.timeout.ms ({application.autoscaling_timeout_ms}) since the first failure. Look "
        f"at the failed runs of expand_{application.application_id}, mend what they say, and trigger it with "
        f"target {target}. From then on, the watch scales the application again."
    )
