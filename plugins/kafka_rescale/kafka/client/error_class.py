"""The classes of errors of brokers and client libraries, and the reaction to each."""

from __future__ import annotations

from enum import Enum, auto


class ErrorClass(Enum):
    """A class of errors, which decides the reaction to an error."""

    NOT_NOW = auto()
    """An outage, and the request was not carried out: ask again for a while."""

    NO_ANSWER = auto()
    """An outage, and the request may or may not have been carried out: look before asking again."""

    FORBIDDEN = auto()
    """The user of the connection lacks a permission."""

    CREDENTIALS = auto()
    """Brokers don't let the client in, or the client does not trust the brokers."""

    FENCED = auto()
    """A newer attempt has taken over."""

    GROUP_IN_USE = auto()
    """Members of the group still live."""

    ABSENT = auto()
    """The topic, the group or another thing asked for does not exist."""

    REFUSED = auto()
    """Brokers refuse it, or stored data can't be used: a person must mend it."""

    MISTAKE = auto()
    """The request is wrong: a mistake of Kafka Rescale."""

    EVENT = auto()
    """No error at all."""
