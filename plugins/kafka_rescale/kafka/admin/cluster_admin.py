"""The requests to a cluster's brokers that the operations need, in one class."""

from __future__ import annotations

import logging
import re
import time

from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.kafka.admin.calls import CHANGE_SECONDS
from kafka_rescale.kafka.admin.offsets import OffsetAdmin
from kafka_rescale.kafka.admin.topics import TopicAdmin
from kafka_rescale.kafka.client.waiting import within

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
"""Seconds between two looks at which brokers are up."""


class ClusterAdmin(TopicAdmin, OffsetAdmin):
    """Administration whose calls are bounded and idempotent. It raises the errors of ``core.errors``.

    :param connection: how to reach the cluster.
    """

    def cluster_id(self) -> str:
        """Return the id of the cluster."""
        return str(self._metadata("cluster").cluster_id)

    def live_brokers(self, wanted: int = 0) -> int:
        """Return the number of brokers that are up.

        :param wanted: wait until this number of brokers is up, because a broker may be restarting. After
            ``CHANGE_SECONDS``, the number that is up then is returned.
        """
        left = within(CHANGE_SECONDS)
        while (live := len(self._metadata("cluster").brokers)) < wanted and left() > 0:
            log.warning("%d brokers are up. Waiting for %d, as many as a topic has replicas.", live, wanted)
            time.sleep(LOOK_SECONDS)
        return live

    def describe_group(self, group: str) -> GroupDescription:
        """Return the state and the members of a group of the classic, the consumer or the streams protocol.

        :returns: state ``Dead`` and no members for a group that doesn't exist.
        :raises UnsafeState: the group is of another kind, whose members can't be seen here.
        :raises ClusterOutage: the coordinator doesn't answer.
        """
        # Imported here, and so in the methods below: the import of kafka-python takes longer than that of all our
        # own modules, and tasks of Spark don't need it.
        from kafka_rescale.kafka.admin.group_members import describe_group

        return describe_group(self.connection, group)

    def groups_like(self, pattern: str) -> tuple[str, ...]:
        """Return the names of the groups that match a pattern as a whole.

        :param pattern: a regular expression.
        :raises ClusterOutage: the brokers don't answer.
        """
        from kafka_rescale.kafka.admin.group_members import all_groups

        return tuple(sorted(name for name in all_groups(self.connection) if re.fullmatch(pattern, name)))

    def remove_members(self, group: str) -> tuple[str, ...]:
        """Remove all members of a group whose instances are known to be stopped.

        A member that still lives comes back by itself. Measured: brokers of Kafka 4.3 remove members of the
        consumer and the streams protocol, too. Older brokers may not.

        :returns: the members that are left.
        :raises Outage: the coordinator doesn't answer.
        """
        from kafka_rescale.kafka.admin.group_members import leave_group

        found = self.describe_group(group)
        leave_group(self.connection, group, found.members, found.protocol)
        return self.describe_group(group).members
