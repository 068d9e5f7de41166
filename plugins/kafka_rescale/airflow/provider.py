"""How Airflow lists this package among its providers."""

from __future__ import annotations

from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import kafka_rescale

INTEGRATION = "Apache Kafka"
KINDS = ("hooks", "operators", "sensors", "triggers")


def get_provider_info() -> dict[str, Any]:
    """Return the provider's description for the entry point ``apache_airflow_provider``.

    It names no connection type. The hook takes connections of type ``kafka``, which the Kafka provider registers.
    """
    return {
        "package-name": "kafka-rescale",
        "name": "Kafka Rescale",
        "description": "Re-partitions the state of a live stateful Kafka application. "
        "Uses connections of type `kafka` and `spark`.",
        "versions": [kafka_rescale.__version__],
        "integrations": [
            {"integration-name": INTEGRATION, "external-doc-url": "https://kafka.apache.org/", "tags": ["apache"]}
        ],
        **{kind: [{"integration-name": INTEGRATION, "python-modules": _modules(kind)}] for kind in KINDS},
        "extra-links": ["kafka_rescale.airflow.page_link.ApplicationPageLink"],
    }


def _modules(kind: str) -> list[str]:
    directory = Path(__file__).with_name(kind)
    return [f"kafka_rescale.airflow.{kind}.{found.name}" for found in iter_modules([str(directory)])]
