"""What looks like a secret in an application file, which many people may read. No message quotes it."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

from kafka_rescale.core.application.mistakes import WrongValue

_USER = re.compile(
    # A secret key may have slashes in it. A port with a path or another server behind it is no password.
    r"://[^\s:@/]*:(?!\d{1,5}(?:[/,?]|$))[^\s@]+@"
    # What stands before the host of a web address is a token, even if there is no colon in it.
    r"|\bhttps?://[^\s/@]+@",
    re.IGNORECASE,
)
_QUERY = re.compile(
    # A key of something else, such as `partition_key`, is no secret.
    r"[?&;](?:key|(?:[\w.-]*[_.-])?(?:(?:api|access|secret|account|shared|storage)[_.-]?key"
    r"|secret|sig|signature|token|password|passwd|pwd))=[^\s&]",
    re.IGNORECASE,
)
_HOOK = re.compile(
    r"://hooks\.slack\.com/\w|://[\w.-]*webhook\.office\.com/|/api/webhooks/|://api\.telegram\.org/bot",
    re.IGNORECASE,
)

_SPARK_SECRET = re.compile(
    r"secret|password|passwd|token(?!iz)|credential|access\.?key|account\.key|private\.key", re.IGNORECASE
)
_SPARK_HARMLESS = re.compile(
    # Classes, addresses, files, directories, patterns, mechanisms, names, times and sizes.
    r"(?:provider|binding|impl|class|url|uri|endpoint|type|file|path|location|dir|regex|mechanism|names?|itemKey"
    r"|bitLength|ratio|interval|wait)$"
    r"|account\.keyprovider|\.renewal\.credentials$|pullSecrets$"
    # Kubernetes: where a secret is mounted, or the name of one and of its key.
    r"|\.(?:secrets|secretKeyRef)\.",
    re.IGNORECASE,
)
_SPARK_OPTION = re.compile(
    r"(?:password|passwd|secret|token|secret[._]?key|access[._]?key)[\"']?\s*[=:]", re.IGNORECASE
)


def address_with_secret(text: str) -> str:
    """Return what is wrong with an address somewhere in a text; empty if no address has credentials in it."""
    if _USER.search(text):
        return "an address with a password"
    if _QUERY.search(text):
        return "an address with a secret in its query"
    return "an address that is itself a secret" if _HOOK.search(text) else ""


def _without_secrets(settings: Any) -> Any:
    """Return settings of Spark.

    They are arguments of ``spark-submit``, which every user of the machine can see, fields in Airflow's page and
    lines in the log of a task.

    :raises WrongValue: a setting is a secret, by its name or its value.
    """
    for name, value in settings.items() if isinstance(settings, dict) else ():
        if found := _secret_of_spark(str(name), value):
            raise WrongValue(
                found=f"`{name}`, {found}",
                expected="no credentials: command lines, Airflow's page and logs would show them",
                remedy="Put them where Spark's drivers and executors run: into spark-defaults.conf, the "
                "environment, or the role of the machine or pod.",
            )
    return settings


def _secret_of_spark(name: str, value: object) -> str:
    if value is None or isinstance(value, bool) or str(value).lower() in {"true", "false"}:
        return ""
    if _SPARK_HARMLESS.search(name):
        return address_with_secret(str(value))
    if _SPARK_SECRET.search(name):
        return "which is named like a secret"
    return "an option with a secret" if _SPARK_OPTION.search(str(value)) else address_with_secret(str(value))


SparkConf = Annotated[dict[str, str], BeforeValidator(_without_secrets)]
"""Settings of Spark, without secrets. This looks before anything else does: the complaint about a value that is no
text would quote it."""
