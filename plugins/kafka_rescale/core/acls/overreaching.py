"""The check for prefixed permissions that also cover names of other applications."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from kafka_rescale.core.acls.acls import Acl, Pattern, Resource
from kafka_rescale.core.errors import Finding


@dataclass(frozen=True)
class OtherApplication:
    """Another application, with the prefixes of its names.

    :param file: the file that declares it, for messages.
    :param internal_prefix: the prefix of the names of its internal topics.
    """

    application_id: str
    file: str
    internal_prefix: str

    def is_reached_by(self, pattern: Pattern) -> bool:
        """Return whether a prefixed pattern covers a topic or group of this application."""
        name = self.application_id
        names = {
            Resource.TOPIC: (f"{self.internal_prefix}-",),
            Resource.GROUP: (name,),
            Resource.TRANSACTIONAL_ID: (f"{name}-", f"kafka-rescale-{name}"),
            Resource.CLUSTER: (),
        }
        return pattern.prefixed and any(pattern.covers(pattern.resource, each) for each in names[pattern.resource])


def overreaching(
    application_id: str, acls: Collection[Acl], others: Iterable[OtherApplication]
) -> Iterator[Finding]:
    """Yield a warning for each other application whose topics or groups a permission covers.

    :param acls: the permissions of the application.
    """
    patterns = sorted({acl.pattern for acl in acls})
    for other in others:
        reaching = [pattern for pattern in patterns if other.is_reached_by(pattern)]
        if reaching:
            roles = ", ".join(dict.fromkeys(acl.role for acl in acls if acl.pattern in reaching))
            yield Finding(
                f"ACLs of {application_id} (roles {roles})",
                f"that they cover {other.application_id} ({other.file}), too: {'; '.join(map(str, reaching))}",
                "prefixes with which nothing of another application begins",
                f"Rename one of the two before it runs: no id may begin with {application_id}-, nor any "
                "`internal_topic_prefix`. Or grant them knowingly, to principals that may do so to both.",
            )
