"""Several real Kafka brokers with a controller quorum of their own: what a production cluster does when one fails.

Every node is broker and controller, so that killing one takes a vote from the quorum as well. Topics have as many
replicas as there are nodes, up to three, and need all but one of them in sync.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from testbed.broker import EmbeddedBroker
from testbed.broker_config import Ports, cluster_id
from testbed.processes import wait_until

NODES = 3
HEALTHY_SECONDS = 120
_IN_SYNC = "every partition to have all of its replicas in sync"


class EmbeddedCluster:
    """Some nodes on one directory, each in a folder of its own and always on the same ports.

    :param directory: of the nodes' folders; made if missing.
    :param nodes: how many.
    :param properties: broker properties that replace or complete the defaults, the same for every node.
    :param heap: ``-Xmx`` of each JVM.
    """

    def __init__(
        self,
        directory: Path | str,
        *,
        nodes: int = NODES,
        properties: Mapping[str, str] | None = None,
        heap: str = "384m",
    ) -> None:
        root = Path(directory).resolve()
        folders = [root / f"node-{number}" for number in range(1, nodes + 1)]
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        controllers = [f"127.0.0.1:{Ports.of(folder).controller}" for folder in folders]
        voters = [f"{number}@{at}:{cluster_id()}" for number, at in enumerate(controllers, 1)]
        formatting = ("--initial-controllers", ",".join(voters), "-t", cluster_id())
        self.brokers: dict[int, EmbeddedBroker] = {
            number: EmbeddedBroker(
                folder,
                properties={**_properties(number, nodes, controllers), **(properties or {})},
                heap=heap,
                formatting=formatting,
            )
            for number, folder in enumerate(folders, 1)
        }

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of all nodes, for clients."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values())

    def client_config(self) -> dict[str, str]:
        """Return librdkafka properties to connect."""
        return {"bootstrap.servers": self.bootstrap_servers}

    def start(self) -> EmbeddedCluster:
        """Start every node, and return when all of them answer."""
        with ThreadPoolExecutor(max_workers=len(self.brokers)) as pool:
            list(pool.map(EmbeddedBroker.launch, self.brokers.values()))
            list(pool.map(EmbeddedBroker.await_ready, self.brokers.values()))
        self.await_healthy()
        return self

    def stop(self) -> None:
        """Kill every node: an orderly stop needs a majority to the end, and what they hold is of no more use."""
        for broker in self.brokers.values():
            broker.kill()

    def await_healthy(self) -> None:
        """Return when every node is known to the cluster, and every partition has all of its replicas in sync.

        :raises TimeoutError: they aren't in time.
        """
        # A new client each time: one that is kept may go on asking a broker that has been replaced since.
        wait_until(self._is_healthy, timeout=HEALTHY_SECONDS, what=_IN_SYNC, poll_seconds=0.5)

    def restart_each(self) -> None:
        """Restart one node after the other, as an upgrade does: the next one when the cluster is whole again."""
        for broker in self.brokers.values():
            broker.restart()
            self.await_healthy()

    def _is_healthy(self) -> bool:
        try:
            found = AdminClient({**self.client_config(), "log_level": 0}).list_topics(timeout=10)
        except KafkaException:
            return False
        partitions = [p for topic in found.topics.values() for p in topic.partitions.values()]
        return len(found.brokers) == len(self.brokers) and all(len(p.isrs) == len(p.replicas) for p in partitions)

    def __enter__(self) -> EmbeddedCluster:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _properties(number: int, nodes: int, controllers: Sequence[str]) -> dict[str, str]:
    """Return what makes a broker one of several."""
    replicas = min(3, nodes)
    in_sync = max(1, replicas - 1)
    return {
        "node.id": str(number),
        "broker.rack": f"rack-{number}",
        "controller.quorum.bootstrap.servers": ",".join(controllers),
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync),
        # 9 s by default: so long nobody leads the partitions of a broker that has died.
        "broker.session.timeout.ms": "6000",
    }


def brokers_on(directory: Path, count: int) -> EmbeddedBroker | EmbeddedCluster:
    """Return what to enter for a cluster of so many nodes: one broker without replicas, or several with them."""
    return EmbeddedBroker(directory) if count == 1 else EmbeddedCluster(directory, nodes=count)
