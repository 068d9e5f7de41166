"""A blue that has survived its stop: it processes the same input as green, and writes the outputs twice."""

from __future__ import annotations

from collections.abc import Collection

from kafka_rescale.core.control.acceptances import Acceptances
from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.expansion.late_writes import late_writes, lost_changelogs
from kafka_rescale.core.plan.instances import blue
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.operations.expansion.rescale import Rescale


def assert_alone(rescale: Rescale, plan: Plan) -> None:
    """Refuse a blue that runs beside green.

    Members of its group are no leftovers: the proof that blue was gone removed all members that there were.

    :raises UnsafeState: blue runs.
    """
    if rescale.is_alive(blue(plan)):
        members = ", ".join(rescale.admin.describe_group(plan.blue).members) or "none"
        raise UnsafeState(
            f"application {plan.blue}",
            found=f"a running instance (members {members}) beside {plan.green}, which runs and owns the inputs",
            expected="no running instance since it was proven gone",
            remedy=f"STOP IT NOW, and let {plan.green} run: both process the same input, and write their outputs "
            "twice. Either `stop` does not reach it, or something has started it since. When it is stopped, clear "
            "this task.",
        )


def assert_still(admin: ClusterAdmin, journal: Journal, acceptances: Acceptances) -> None:
    """Check that blue's changelogs end where they ended when it was proven gone.

    :param acceptances: writes and lost changelogs that a person has accepted are allowed; later ones are not.
    :raises UnsafeState: blue has written since, or a changelog was deleted or made anew.
    :raises ClusterOutage: a broker does not know a changelog that the controller knows.
    """
    assert journal.captured is not None
    ends = present_ends(admin, journal.captured.changelog_ends)
    known = acceptances.of(journal.plan.fingerprint)
    if lost := [name for name in lost_changelogs(journal, ends) if name not in known]:
        raise UnsafeState(
            f"application {journal.plan.blue}",
            found=f"no such changelogs any more, or other topics by their names: {', '.join(lost)}",
            expected="its changelogs as they were when it was proven gone",
            remedy="They were deleted, or an instance of it is alive beside the promoted generation and has made "
            f"them anew: stop it, and compare its output. {_accept('each of them')}",
        )
    late = [str(each) for each in late_writes(journal, ends) if str(each) not in known]
    if late:
        raise UnsafeState(
            f"application {journal.plan.blue}",
            found=f"new records in {', '.join(late)}",
            expected="no new records since it was proven gone",
            remedy="An instance of it was alive beside the promoted generation. Make sure that it is stopped, and "
            f"compare its output. {_accept('each range')}",
        )


def present_ends(admin: ClusterAdmin, topics: Collection[str]) -> PartitionOffsets:
    """Return the present ends of those of blue's changelogs that exist.

    A topic that a broker does not know yet is not taken for a lost one: that would be a finding for a person.

    :raises ClusterOutage: brokers don't know a topic that exists.
    """
    return admin.end_offsets(set(topics) - admin.absent_of(topics))


def _accept(what: str) -> str:
    return (
        f"Then accept {what} by this name: `python -m kafka_rescale accept FILE --finding NAME --reason TEXT`, or "
        "accept_… in Airflow; then clear this task."
    )
