"""What of the client libraries' own texts comes into our logs and errors."""

from __future__ import annotations

import logging
import re

_ANSWER = re.compile(
    r"(Failed to acquire SASL OAUTHBEARER token|Failed to retrieve OIDC token from \"[^\"]*\"): "
    r".*?(?: \((-?\d{1,3})\))?\Z",
    re.DOTALL,
)
"""librdkafka's texts with the whole answer of a token issuer, and at the end of some the code of HTTP."""


def without_answer(text: str) -> str:
    """Return a text of librdkafka without the answer of a token issuer, of which only the code is kept.

    librdkafka sends the client's secret to the issuer (KIP-768), and an issuer may quote the request.
    """
    found = _ANSWER.search(text)
    if found is None:
        return text
    said, code = found.groups()
    return f"{text[: found.start()]}{said}{f' ({code})' if code else ''}; what the issuer says is not told here"


class _WithoutAnswers(logging.Filter):
    """Cut the answers of token issuers from librdkafka's lines."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = without_answer(record.getMessage()), ()
        return True


LIBRDKAFKA_LOG = logging.getLogger("kafka_rescale.librdkafka")
"""The logger that gets librdkafka's own log."""
LIBRDKAFKA_LOG.addFilter(_WithoutAnswers())


def quieten_kafka_python() -> None:
    """Keep kafka-python from telling what nobody can mend, and what looks like a fault at night.

    On a busy machine it warns that reading an answer of thousands of partitions blocks its loop. While a broker is
    away, an idle client tells each connection that it has tried. Its exceptions say what our requests lack.
    """
    logging.getLogger("kafka").setLevel(logging.WARNING)
    for name in ("kafka.net", "kafka.cluster"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
