"""An application of two sub-topologies with every store type. Its file, topics and records are made by hand.

The records that Kafka Streams would write are written here one by one, so that a test can spoil one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.partitioning.partitioners import partitioner_named

START_MS = 1_600_000_000_000
KEYS = tuple(f"customer-{i}".encode() for i in range(24))

_TOPOLOGY = """\
Topologies:
   Sub-topology: 0
    Source: orders-source (topics: [NAME-orders])
      --> re-key
    Processor: re-key (stores: [])
      --> by-customer-repartition-sink
      <-- orders-source
    Sink: by-customer-repartition-sink (topic: by-customer-repartition)
      <-- re-key

  Sub-topology: 1
    Source: by-customer-repartition-source (topics: [by-customer-repartition])
      --> join
    Source: customers-source (topics: [NAME-customers])
      --> customers-table
    Processor: join (stores: [customers, totals, hourly, visits])
      --> totals-sink
      <-- by-customer-repartition-source
    Processor: customers-table (stores: [customers])
      --> none
      <-- customers-source
    Sink: totals-sink (topic: NAME-totals)
      <-- join
"""


class Made(NamedTuple):
    """A record to be written."""

    partition: int
    key: bytes | None
    timestamp_ms: int = START_MS


def declared(name: str, **changes: Any) -> dict[str, Any]:
    """Return the fields of the file. ``changes`` replaces fields."""
    return {
        "application_id": name,
        "partitions": 8,
        "inputs": [
            {"topic": f"{name}-orders", "policy": "unkeyed"},
            {"topic": f"{name}-customers", "policy": "paused"},
        ],
        "outputs": [{"topic": f"{name}-totals"}],
        "topology": topology_text(name),
        "stores": [
            {"name": "customers", "type": "timestamped-key-value"},
            {"name": "totals", "type": "timestamped-key-value"},
            {"name": "hourly", "type": "timestamped-window"},
            {"name": "visits", "type": "session"},
        ],
        "lifecycle": {
            "type": "shell",
            "start": "true {application_id} {partitions}",
            "stop": "true {application_id}",
            "status": f"sh -c 'test $0 = {name} || exit 3' {{application_id}}",
        },
        **changes,
    }


def topology_text(name: str) -> str:
    """Return what ``Topology#describe()`` would print."""
    return _TOPOLOGY.replace("NAME", name)


def application(name: str, **changes: Any) -> Application:
    """Return the application without a file."""
    return Application.model_validate(declared(name, **changes))


def write(directory: Path, name: str, **changes: Any) -> Path:
    """Write the application file and return its path."""
    file = directory / f"{name}.yaml"
    file.write_text(yaml.safe_dump(declared(name, **changes), sort_keys=False))
    return file


def topic_configs(name: str) -> dict[str, dict[str, str]]:
    """Return the topics of the first generation with the configs that Kafka Streams gives them."""
    windowed = {"cleanup.policy": "compact,delete", "retention.ms": "-1"}
    return {
        f"{name}-orders": {"retention.ms": "-1"},
        f"{name}-customers": {"cleanup.policy": "compact"},
        f"{name}-totals": {"cleanup.policy": "compact"},
        f"{name}-by-customer-repartition": {"cleanup.policy": "delete", "retention.ms": "-1"},
        f"{name}-customers-changelog": {"cleanup.policy": "compact"},
        f"{name}-totals-changelog": {"cleanup.policy": "compact"},
        f"{name}-hourly-changelog": windowed,
        f"{name}-visits-changelog": windowed,
    }


def records(name: str, partitions: int = 4, partitioner: str = "murmur2") -> dict[str, list[Made]]:
    """Return the records of a sound application, per topic."""
    plain = placed(KEYS, partitions, partitioner)
    window = START_MS.to_bytes(8, "big") + bytes(4)
    session = (START_MS + 60_000).to_bytes(8, "big") + START_MS.to_bytes(8, "big")
    return {
        f"{name}-orders": [Made(i % partitions, None) for i in range(8)],
        f"{name}-customers": plain,
        f"{name}-by-customer-repartition": plain,
        f"{name}-customers-changelog": plain,
        f"{name}-totals-changelog": plain,
        f"{name}-hourly-changelog": [m._replace(key=(m.key or b"") + window) for m in plain],
        f"{name}-visits-changelog": [m._replace(key=(m.key or b"") + session) for m in plain],
    }


def placed(keys: tuple[bytes, ...], partitions: int, partitioner: str = "murmur2") -> list[Made]:
    """Return a record per key, in the partition that a partitioner chooses."""
    homes = partitioner_named(partitioner).partition_batch(keys, partitions)
    return [Made(partition, key) for key, partition in zip(keys, homes, strict=True)]


def with_counts(name: str, counts: Mapping[str, int], default: int = 4) -> dict[str, int]:
    """Return the partition count of every topic. The names in ``counts`` are without the application's prefix."""
    return {topic: counts.get(topic.removeprefix(f"{name}-"), default) for topic in topic_configs(name)}
