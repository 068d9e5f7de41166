"""Files with librdkafka settings, and files that settings name."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafka_rescale.core.application.config_files import CERTIFICATE, identity_of
from kafka_rescale.core.errors import InvalidInput, Unreadable
from kafka_rescale.kafka.client.client_settings import CONNECTION_KEYS

CONFIG_FILE_VARIABLE = "KAFKA_RESCALE_KAFKA_CONFIG_FILE"
CONFIG_VARIABLE = "KAFKA_RESCALE_KAFKA_CONFIG"
EXPECTED_VARIABLE = "KAFKA_RESCALE_KAFKA_EXPECTED"
"""The variable with the settings that the file has to agree with. These settings are no secrets."""
ENVIRONMENT_REMEDY = (
    f"Set {CONFIG_FILE_VARIABLE} to a JSON file of librdkafka settings, or {CONFIG_VARIABLE} to such JSON."
)


def settings_in(file: str, what: str) -> dict[str, Any]:
    """Return the settings in a JSON file.

    :param what: the file, for the message.
    :raises Unreadable: the system can't read it, at the moment or at all.
    :raises InvalidInput: it is no JSON object. The error quotes nothing of the file.
    """
    try:
        text = Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise Unreadable.of(_unusable(what, reason_of(error)).complaint) from None
    except UnicodeDecodeError as error:
        raise _unusable(what, reason_of(error)) from None
    return json_settings(text, what)


def json_settings(text: str, what: str) -> dict[str, Any]:
    """Return the settings in a JSON text.

    :param what: where the text is from, for the message.
    :raises InvalidInput: the text is no JSON object. The error quotes nothing of it.
    """
    try:
        settings = json.loads(text)
    except ValueError as error:
        # The error's own text may quote the settings, so only its type is told.
        raise _unusable(what, f"{type(error).__name__} when reading it" if text else "nothing") from None
    if not isinstance(settings, dict):
        raise _unusable(what, f"JSON of type {type(settings).__name__}")
    return settings


def as_word(settings: Mapping[str, str]) -> str:
    """Return settings as one word. YARN passes environments through a shell, where JSON would lose its quotes."""
    return urlsafe_b64encode(json.dumps(dict(settings)).encode()).decode()


def of_word(word: str) -> dict[str, Any]:
    """Return the settings that ``as_word`` has made a word of."""
    return dict(json.loads(urlsafe_b64decode(word)))


def environment_of(config: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that gives settings to a job whose environment is private.

    Other users can see arguments and Spark properties, and a file would stay if a signal ended its writer. The
    empty variable keeps the job from using a file that its environment has inherited.
    """
    return {CONFIG_VARIABLE: json.dumps(dict(config)), CONFIG_FILE_VARIABLE: ""}


def identity_here(settings: Mapping[str, object]) -> dict[str, str]:
    """Return what identifies cluster and principal in settings, with the certificate that can be read here."""
    certificate = str(settings.get(CERTIFICATE, ""))
    return identity_of(settings, subject_of(certificate) if certificate else "")


def subject_of(certificate: str) -> str | None:
    """Return the subject of the first certificate in a file, as brokers without mapping rules write it.

    :param certificate: path of a PEM file.
    :returns: None if it can't be read here, or this Python has no package ``cryptography``.
    """
    try:
        from cryptography.x509 import load_pem_x509_certificates

        return load_pem_x509_certificates(Path(certificate).read_bytes())[0].subject.rfc4514_string()
    except (ImportError, OSError, ValueError):
        return None


def require_files(config: Mapping[str, str], origin: str) -> None:
    """Refuse settings that name files which can't be read here. Clients would report them late, or not at all.

    :param config: librdkafka settings; those named ``*.location`` are paths.
    :param origin: where they were found, for the message.
    :raises Unreadable: the system can't read a file, at the moment or at all.
    """
    for key, path in config.items():
        if key not in CONNECTION_KEYS or not key.endswith(".location") or not path:
            continue
        try:
            with Path(path).open("rb"):
                pass
        except OSError as error:
            raise Unreadable(
                f"{origin}, {key}",
                found=f"{path}: {reason_of(error)}",
                expected="a file that can be read here",
                remedy="Mount it at this path wherever tasks and Spark's drivers run, or correct the path.",
            ) from None


def reason_of(error: Exception) -> str:
    """Return why a file can't be read, without quoting it."""
    told = error.strerror if isinstance(error, OSError) else None
    return told or f"{type(error).__name__} when reading it"


def _unusable(what: str, found: str) -> InvalidInput:
    return InvalidInput(what, found=found, expected="a JSON object", remedy=ENVIRONMENT_REMEDY)
