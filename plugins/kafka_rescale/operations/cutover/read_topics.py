"""What the running generation reads, once more before the pause: days may have passed since preflight."""

from __future__ import annotations

from dataclasses import replace

from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.preflight.undeclared import undeclared_reads
from kafka_rescale.operations.expansion.rescale import Rescale


def assert_all_declared(rescale: Rescale, plan: Plan) -> None:
    """Check that the members of blue's group read no other topics than the plan names.

    Another program may have been deployed since. Members of the streams protocol don't tell their topics.

    :raises UnsafeState: they read another topic, in which green would have no offsets.
    """
    known = {i.topic for i in plan.inputs} | {m.source for m in plan.moves}
    group = rescale.admin.describe_group(plan.blue)
    complaint = undeclared_reads(group, known, rescale.application.source_patterns)
    if complaint is not None:
        remedy = (
            f"The running generation goes on; this attempt is rolled back. {complaint.remedy} Then trigger the "
            "expansion again."
        )
        raise UnsafeState.of(replace(complaint, remedy=remedy))
