"""Free space as real brokers report it, and a real disk that is too small for the copies."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.errors import PreflightRefused
from kafka_rescale.core.values import size
from kafka_rescale.kafka.admin.log_dirs import read_disks
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.broker import EmbeddedBroker
from tests.support.small_application import START_MS, placed
from tests.support.small_cluster import make, run_preflight

pytestmark = pytest.mark.integration

STATE = 72 * 2**20
"""Bytes of the state on a disk of 128 MiB. A copy of the state does not fit there."""

KEYS = tuple(f"big-{i}".encode() for i in range(96))


def fill(client: Mapping[str, str], changelog: str, size: int) -> None:
    """Write state that can't be compressed. Each key is in the partition of murmur2."""
    producer = Producer({**client, "linger.ms": 5})
    value = os.urandom(size // len(KEYS))
    for made in placed(KEYS, 4):
        producer.produce(changelog, key=made.key, value=value, partition=made.partition, timestamp=START_MS)
    assert producer.flush(60) == 0


def test_the_figures_are_those_of_the_file_system(
    broker: EmbeddedBroker, client: dict[str, str], unique: str, tmp_path: Path
) -> None:
    make(client, unique)
    fill(client, f"{unique}-totals-changelog", 4 * 2**20)
    disks = read_disks(KafkaConnection(client), {f"{unique}-totals-changelog": 4})
    (log_dir,) = disks.log_dirs
    seen = os.statvfs(log_dir.path)
    assert disks.untold == {}
    assert log_dir.total == seen.f_blocks * seen.f_frsize
    assert log_dir.usable is not None
    assert log_dir.total is not None
    assert log_dir.usable == pytest.approx(seen.f_bavail * seen.f_frsize, rel=0.05)
    on_disk = sum(f.stat().st_size for f in Path(log_dir.path).glob(f"{unique}-totals-changelog-*/*.log"))
    assert sum(log_dir.sizes.values()) == on_disk > 4 * 2**20
    (told,) = (m for m in run_preflight(client, tmp_path, unique).messages if m.startswith("Disk: "))
    assert told.startswith("Disk: at most 4.2 MB are written, replicas included. Most is taken of log dir ")


def test_a_disk_that_would_not_hold_the_copy_is_refused(small_disk: Path, tmp_path: Path) -> None:
    with EmbeddedBroker(small_disk / "broker", heap="384m") as broker:
        client = broker.client_config()
        make(client, "shop")
        fill(client, "shop-totals-changelog", STATE)
        with pytest.raises(PreflightRefused) as refused:
            run_preflight(client, tmp_path, "shop")
        (finding,) = refused.value.findings
        usable = shutil.disk_usage(small_disk).free
        assert finding.what == f"log dir '{small_disk}/broker/data' of broker 1"
        said = int(finding.found.split()[0].replace(",", ""))
        assert said == pytest.approx(usable, rel=0.05)
        assert f"({size(said)})" in finding.found
        assert finding.expected.startswith("room for ")
        assert "with 10 % left free" in finding.expected
        assert "shop-totals-changelog (" in finding.remedy
        assert "free_disk_percent:" in finding.remedy
        told = run_preflight(client, tmp_path, "shop", free_disk_percent=None)
        assert told.plan is not None
        assert any(m.startswith("Disk: at most ") for m in told.messages)
