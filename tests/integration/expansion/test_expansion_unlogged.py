"""A live application with a store without logging beside a logged one is expanded: the first starts empty."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from kafka_rescale.core.errors import PreflightRefused
from kafka_rescale.core.verify.proof import Proof
from kafka_rescale.core.verify.report import Report
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.lifecycle.instance import Instance

from testbed.broker import EmbeddedBroker
from testbed.expansion import Expansion
from testbed.processes import wait_until
from tests.integration.copy_helpers import read
from tests.support.counting_lifecycle import VARIABLE, Counting
from tests.support.live_expansion import journal_of
from tests.support.stores import live_entries

pytestmark = [pytest.mark.integration, pytest.mark.slow]

BEFORE, AFTER, KEYS, PRELOAD = 4, 6, 60, 3_000
SETTINGS = {
    "processing.guarantee": "exactly_once_v2",
    "commit.interval.ms": "100",
    "auto.offset.reset": "earliest",
}
TOLD = "Store recent is not copied: no changelog, so it is empty when the new generation starts"


class Source:
    """Sends records in the background, and counts them by key."""

    def __init__(self, client: dict[str, str], topic: str) -> None:
        self.sent: Counter[bytes] = Counter()
        self._topic, self._producer = topic, Producer(client)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def begin(self) -> None:
        self._send(PRELOAD)
        self._thread.start()

    def end(self) -> None:
        self._stop.set()
        self._thread.join(60)

    def _go_on(self) -> None:
        while not self._stop.wait(0.05):
            self._send(1)

    def _send(self, count: int) -> None:
        for _ in range(count):
            key = f"key-{sum(self.sent.values()) % KEYS}".encode()
            self._producer.produce(self._topic, b"v", key)
            self.sent[key] += 1
        assert self._producer.flush(60) == 0


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker for this test alone, because an expansion needs the machine's memory."""
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as running:
        yield running


@pytest.fixture
def declared(
    own_broker: EmbeddedBroker, tmp_path: Path, unique: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """The fields of the application file. Its instances end with the test."""
    given = {
        "servers": own_broker.bootstrap_servers,
        "topic": unique,
        "directory": str(tmp_path / "state"),
        "settings": SETTINGS,
        "program": "RecentMember",
    }
    monkeypatch.setenv(VARIABLE, json.dumps(given))
    yield {
        "application_id": unique,
        "partitions": AFTER,
        "inputs": [{"topic": unique, "policy": "unkeyed"}],
        "outputs": [{"topic": f"{unique}-counts"}],
        "subtopologies": [
            {"sources": [unique], "sinks": ["by-key-repartition"]},
            {"sources": ["by-key-repartition"], "stores": ["recent", "totals"], "sinks": [f"{unique}-counts"]},
        ],
        "stores": [{"name": "totals", "type": "key-value"}, {"name": "recent", "changelog": "none"}],
        "lifecycle": {"type": "python", "callable": "tests.support.counting_lifecycle:GatedCounting"},
    }
    for member in Counting.members.values():
        member.kill()


def test_what_is_logged_goes_on_and_what_is_not_begins_anew(
    own_broker: EmbeddedBroker, tmp_path: Path, unique: str, declared: dict[str, Any]
) -> None:
    client, servers, green = own_broker.client_config(), own_broker.bootstrap_servers, f"{unique}-g2"
    connection = KafkaConnection(client)
    admin, output = ClusterAdmin(connection), f"{unique}-counts"
    for topic in (unique, output):
        admin.ensure_topic(topic, BEFORE, 1, {})
    source = Source(client, unique)
    source.begin()
    Counting().start(Instance(unique, 1, BEFORE))
    wait_until(
        lambda: counted(connection, output) >= PRELOAD, timeout=120, what="the counts of what was sent first"
    )

    typed = [{"name": name, "type": "key-value"} for name in ("totals", "recent")]
    with pytest.raises(PreflightRefused, match=r"- \{name: recent, changelog: none\}"):
        expansion_of({**declared, "stores": typed}, servers, tmp_path / "refused").begin()
    expansion = expansion_of(declared, servers, tmp_path / "run")
    timings = expansion.run()

    state = expansion.state()
    report, proof = Report.model_validate(state.report), Proof.model_validate(state.proof)
    assert journal_of(expansion).plan.not_copied == ("recent",)
    assert report.passed
    assert [s.store for s in report.stores] == [s.store for s in proof.stores] == ["totals"]
    assert report.not_copied == proof.not_copied == ("recent",)
    assert state.results["prove"].detail.endswith(TOLD)
    source.end()
    sent = sum(source.sent.values())
    wait_until(lambda: counted(connection, output) >= sent, timeout=90, what="the counts of all that was sent")
    Counting().stop(Instance(green, 2, AFTER))

    of_blue, of_green = (totals(servers, name) for name in (unique, green))
    assert of_green == source.sent
    assert all(0 < of_blue[key] < count for key, count in of_green.items()), "it was not live all the time"
    for key, (total, recent) in outputs(connection, output).items():
        expected, before = source.sent[key], of_blue[key]
        assert total == [*range(1, expected + 1)]
        assert recent == [*range(1, before + 1), *range(1, expected - before + 1)]
    assert not admin.describe_topics([f"{name}-recent-changelog" for name in (unique, green)])
    print(f"{BEFORE}→{AFTER}, a store without logging: {timings}")


def expansion_of(declared: dict[str, Any], servers: str, directory: Path) -> Expansion:
    """Return an expansion of an application file with these fields."""
    directory.mkdir()
    file = directory / "application.yaml"
    file.write_text(yaml.safe_dump(declared))
    return Expansion.of_file(file, servers, directory)


def counted(connection: KafkaConnection, output: str) -> int:
    """Return for how many records counts were written."""
    return sum(map(len, read(connection, output).values()))


def outputs(connection: KafkaConnection, output: str) -> dict[bytes, tuple[list[int], list[int]]]:
    """Return by key what the two stores have counted, record by record."""
    found: dict[bytes, tuple[list[int], list[int]]] = {}
    for record in (r for records in read(connection, output).values() for r in records):
        total, recent = found.setdefault(record.key or b"", ([], []))
        value = record.value or b""
        total.append(int.from_bytes(value[:8], "big"))
        recent.append(int.from_bytes(value[8:], "big"))
    return found


def totals(servers: str, generation: str) -> dict[bytes, int]:
    """Return by key what the logged store has counted, as its changelog has it."""
    entries = live_entries(servers, f"{generation}-totals-changelog")
    return {key: int.from_bytes(value, "big") for key, (value, _) in entries.items()}
