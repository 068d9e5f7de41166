"""The permissions that each role needs for one application and all its generations.

They follow from its file, and from the names of the topics that an expansion has put in place of inputs.

The requests to the brokers decide which permissions are needed. A test on an authorizing broker takes each
permission away in turn. No role needs a permission on the cluster: Create on the topics themselves is enough, and
since Kafka 2.8 brokers require no permission for idempotent producers (KIP-679). But one permission on the cluster
is of use: without it, brokers don't tell their free space (``DISK_SPACE``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kafka_rescale.core.acls.acls import Acl, Operation, Pattern, Resource, without_needless
from kafka_rescale.core.application.streams import Application, Mode, keyed_inputs
from kafka_rescale.core.application.topics import SUCCESSOR, Input, InputPolicy
from kafka_rescale.core.control.keys import CONTROL_TOPIC
from kafka_rescale.core.roles import Role
from kafka_rescale.core.topology.topology import Topology

READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
SEEN = (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)
_GROWING = {InputPolicy.UNKEYED, InputPolicy.PAUSED}

Permissions = Iterator[tuple[Pattern, tuple[Operation, ...]]]


def needed_acls(
    application: Application, topology: Topology, renamed: Mapping[str, str] | None = None
) -> tuple[Acl, ...]:
    """Return the permissions that every role needs, role by role, without duplicates.

    :param renamed: by input, the topic that the running generation reads instead, after an expansion that
        repartitioned the input. The control state knows these topics.
    """
    patterns = Patterns(application, topology, renamed or {})
    roles = {Role.PLAN: _plan, Role.COPY: _copy, Role.ADMIN: _admin, Role.VERIFY: _verify}
    return without_needless(
        Acl(role, pattern, operation)
        for role, permissions in roles.items()
        for pattern, operations in (*everybody(), *permissions(patterns))
        for operation in operations
    )


def retirement_acls(application: Application, topology: Topology) -> tuple[Acl, ...]:
    """Return the permissions that only ``retire`` needs, for an application that is expanded in place.

    The earlier generations of such an application may be of mode ``blue_green``, and have topics to delete. These
    permissions are listed apart, because no expansion in place deletes anything, and most such applications have
    never had another mode.
    """
    of = Patterns(application, topology)
    if not of.in_place:
        return ()
    return without_needless(Acl(Role.ADMIN, each, Operation.DELETE) for each in (of.internal, *of.groups))


DISK_SPACE = tuple(
    Acl(role, Pattern(Resource.CLUSTER, "kafka-cluster"), DESCRIBE) for role in (Role.PLAN, Role.COPY)
)
"""The permissions with which preflight and the copy learn how much space brokers have. To a role without its
permission, the space is unknown."""


def disk_space_acls(application: Application) -> tuple[Acl, ...]:
    """Return the permissions with which the roles learn how much space brokers have.

    In place, nothing is copied beside the application; and without ``free_disk_percent`` no copy rests.
    """
    is_watched = application.mode is not Mode.IN_PLACE and application.free_disk_percent is not None
    return tuple(each for each in DISK_SPACE if is_watched or each.role is Role.PLAN)


@dataclass(frozen=True)
class Patterns:
    """The resources of one application.

    :param renamed: as in ``needed_acls``.
    """

    application: Application
    topology: Topology
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def in_place(self) -> bool:
        """Whether an expansion grows the application's own topics."""
        return self.application.mode is Mode.IN_PLACE

    @property
    def internal(self) -> Pattern:
        """Internal topics of every generation."""
        prefix = self.application.internal_prefix(self.application.application_id)
        return Pattern(Resource.TOPIC, f"{prefix}-", prefixed=True)

    @property
    def groups(self) -> tuple[Pattern, Pattern]:
        """The groups of every generation, of its copies, its bridge and its warm-up gate."""
        return own_groups(self.application.application_id)

    @property
    def copies(self) -> Pattern:
        """Transactional ids of the copies."""
        return Pattern(Resource.TRANSACTIONAL_ID, f"kafka-rescale-{self.application.application_id}-", True)

    @property
    def controller(self) -> Pattern:
        """The transactional id of the records of lease and journal."""
        return Pattern(Resource.TRANSACTIONAL_ID, f"kafka-rescale-{self.application.application_id}")

    def of_job(self, concern: str, *, prefixed: bool = False) -> Pattern:
        """Return the transactional id of a job's own records."""
        return Pattern(Resource.TRANSACTIONAL_ID, f"{self.controller.name}/{concern}", prefixed)

    def inputs(self) -> Iterator[tuple[Input | None, Pattern]]:
        """Yield every input with its declaration, which is None if the file does not declare the input.

        The topic that is read instead of an input needs what the input's policy needs. No pattern of the file
        covers it if the policy or ``successor`` has changed since the expansion that made it.
        """
        declared = {i.topic: i for i in self.application.inputs}
        for topic in dict.fromkeys([*declared, *self.topology.inputs]):
            for name in dict.fromkeys([topic, self.renamed.get(topic, topic)]):
                yield declared.get(topic), Pattern(Resource.TOPIC, name)

    def successors(self) -> Iterator[Pattern]:
        """Yield patterns that cover the successors of ``repartitioned`` inputs, with any partition count."""
        for each in self.application.inputs:
            if each.policy is InputPolicy.REPARTITIONED:
                name, counted, _ = (each.successor or SUCCESSOR).partition("{partitions}")
                yield Pattern(Resource.TOPIC, name.format(topic=each.topic), prefixed=bool(counted))

    def outputs(self) -> Iterator[tuple[bool, Pattern]]:
        """Yield every output, and whether it will grow."""
        growing = {o.topic for o in self.application.outputs if o.partitions is not None}
        for topic in dict.fromkeys([*(o.topic for o in self.application.outputs), *self.topology.outputs]):
            yield topic in growing, Pattern(Resource.TOPIC, topic)

    def neighbours(self) -> Iterator[Pattern]:
        """Yield the groups of applications that are stopped as producers of an input."""
        for each in self.neighbour_ids():
            yield from own_groups(each)

    def neighbour_ids(self) -> Iterator[str]:
        """Yield the applications that are stopped as producers of an input."""
        for each in self.application.inputs:
            if each.producers is not None and each.producers.application is not None:
                yield each.producers.application


def own_groups(application_id: str) -> tuple[Pattern, Pattern]:
    """Return the groups of the first generation and of later generations."""
    return Pattern(Resource.GROUP, application_id), Pattern(Resource.GROUP, f"{application_id}-", prefixed=True)


def everybody() -> Permissions:
    """Yield the permissions that every role needs to read the records about the application."""
    yield Pattern(Resource.TOPIC, CONTROL_TOPIC), (READ, Operation.DESCRIBE_CONFIGS)
    # A reader that commits nothing still looks for the coordinator of its group.
    yield Pattern(Resource.GROUP, "kafka-rescale-", prefixed=True), (DESCRIBE,)


def _plan(of: Patterns) -> Permissions:
    yield of.internal, (READ, Operation.DESCRIBE_CONFIGS)
    sampled = keyed_inputs(of.application, of.topology)
    for declared, topic in of.inputs():
        yield topic, (READ, Operation.DESCRIBE_CONFIGS) if declared in sampled else SEEN
    for topic in of.successors():
        yield topic, (READ, Operation.DESCRIBE_CONFIGS)
    for _, topic in of.outputs():
        yield topic, SEEN
    for group in of.groups:
        yield group, (DESCRIBE,)


def _copy(of: Patterns) -> Permissions:
    yield Pattern(Resource.TOPIC, CONTROL_TOPIC), (WRITE,)
    # A copy that starts from scratch empties its target. In place no target is emptied.
    emptied = () if of.in_place else (Operation.ALTER_CONFIGS, Operation.DELETE)
    yield of.internal, (READ, WRITE, Operation.DESCRIBE_CONFIGS, *emptied)
    for declared, topic in of.inputs():
        if declared is not None and declared.policy is InputPolicy.REPARTITIONED:
            yield topic, (READ, Operation.DESCRIBE_CONFIGS)
    for topic in of.successors():
        yield topic, (READ, WRITE, Operation.DESCRIBE_CONFIGS)
    first, later = of.groups
    yield later, (READ,)
    if of.in_place:
        yield first, (DESCRIBE,)
    if of.application.snapshots is not None:
        yield from _snapshot(of)
    if of.application.pacing is not None:
        # The copy slows down when the application's input lag grows.
        for _, topic in of.inputs():
            yield topic, (DESCRIBE,)
        yield first, (DESCRIBE,)
    yield of.copies, (WRITE,)
    yield of.of_job("result/", prefixed=True), (WRITE,)


def _snapshot(of: Patterns) -> Permissions:
    """Yield the further permissions of snapshot jobs. A snapshot may be the first job that writes a result."""
    yield Pattern(Resource.TOPIC, CONTROL_TOPIC), (Operation.CREATE,)
    # A day is complete when the application has processed all records that its inputs held by then.
    for _, topic in of.inputs():
        yield topic, (READ, Operation.DESCRIBE_CONFIGS)
    yield of.groups[0], (DESCRIBE,)


def _admin(of: Patterns) -> Permissions:
    yield Pattern(Resource.TOPIC, CONTROL_TOPIC), (Operation.CREATE, WRITE, Operation.ALTER_CONFIGS)
    made = (Operation.ALTER,) if of.in_place else (Operation.CREATE, Operation.DELETE)
    yield of.internal, (READ, Operation.ALTER_CONFIGS, *made)
    for declared, topic in of.inputs():
        # Committing offsets of a topic needs Read on it.
        yield topic, (READ, Operation.DESCRIBE_CONFIGS)
        if declared is not None and declared.policy in _GROWING:
            yield topic, (Operation.ALTER,)
    for topic in of.successors():
        yield topic, (READ, Operation.CREATE, Operation.ALTER_CONFIGS)
    for grows, topic in of.outputs():
        yield topic, (*SEEN, Operation.ALTER) if grows else SEEN
    for group in of.groups:
        yield group, (READ,) if of.in_place else (READ, Operation.DELETE)
    for group in of.neighbours():
        yield group, (READ,)
    for neighbour in of.neighbour_ids():
        # The counts of its repartition topics give the count with which it has to be started again.
        yield Pattern(Resource.TOPIC, f"{neighbour}-", prefixed=True), SEEN
    yield of.controller, (WRITE,)
    yield of.copies, (WRITE,)
    # The watch has a transactional id of its own: it and the writer of lease and journal never fence each other.
    yield of.of_job("result/watch"), (WRITE,)


def _verify(of: Patterns) -> Permissions:
    yield Pattern(Resource.TOPIC, CONTROL_TOPIC), (WRITE,)
    yield of.internal, (READ, Operation.DESCRIBE_CONFIGS)
    # Verify searches inputs for records in the partitions of the old count, and asks whether green has processed
    # what they have. It searches the outputs for what green has aborted.
    for declared, topic in of.inputs():
        is_searched = declared is not None and declared.policy is InputPolicy.PAUSED
        yield topic, (READ, Operation.DESCRIBE_CONFIGS) if is_searched else (READ,)
    for topic in of.successors():
        yield topic, (READ,)
    for _, topic in of.outputs():
        yield topic, (READ,)
    for group in of.groups:
        yield group, (DESCRIBE,)
    yield of.of_job("report"), (WRITE,)
    if not of.in_place:
        yield of.of_job("result/prove"), (WRITE,)
