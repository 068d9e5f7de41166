"""Do the permissions of an application also cover topics or groups of applications declared beside it?"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from kafka_rescale.core.acls.acls import Acl
from kafka_rescale.core.acls.overreaching import OtherApplication, overreaching
from kafka_rescale.core.errors import Finding, InvalidInput
from kafka_rescale.operations.application.load import fields_of, files_in


def overreach(file: Path, application_id: str, acls: Collection[Acl]) -> list[Finding]:
    """Return a warning for each application in the directory of a file that the file's ACLs cover as well.

    :param acls: the permissions that the file's application needs.
    """
    return list(overreaching(application_id, acls, _beside(file, application_id)))


def _beside(file: Path, application_id: str) -> list[OtherApplication]:
    found = []
    for each in files_in(file.parent):
        try:
            fields = fields_of(each)
        except InvalidInput:
            continue  # The file's own mistakes are reported where it is used.
        name = str(fields.get("application_id", ""))
        if name not in {"", application_id}:
            prefix = str(fields.get("internal_topic_prefix") or name)
            found.append(OtherApplication(name, str(each), prefix))
    return found
