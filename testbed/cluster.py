"""Several real Kafka brokers with a controller quorum, to see what a production cluster does when a broker fails.

Every node is broker and controller, so that a killed node also takes a vote from the quorum. Or one more node is
the only controller, and its death leaves no controller. Topics have as many replicas as there are brokers, up to
three. All replicas but one have to be in sync.
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
from testbed.processes import is_listening, wait_until

NODES = 3
HEALTHY_SECONDS = 120
_IN_SYNC = "every partition to have all of its replicas in sync"


class EmbeddedCluster:
    """Several nodes on one directory, each in a folder of its own and always on the same ports.

    :param directory: directory of the nodes' folders; made if missing.
    :param nodes: how many brokers.
    :param lone_controller: whether the only controller is a further node, with the highest number, that is no
        broker.
    :param properties: broker properties that replace or complete the defaults, the same for every node.
    :param heap: ``-Xmx`` of each JVM.
    """

    def __init__(
        self,
        directory: Path | str,
        *,
        nodes: int = NODES,
        lone_controller: bool = False,
        properties: Mapping[str, str] | None = None,
        heap: str = "384m",
    ) -> None:
        root = Path(directory).resolve()
        numbers = range(1, nodes + 1 + lone_controller)
        folders = {number: root / f"node-{number}" for number in numbers}
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        electable = numbers[-1:] if lone_controller else numbers
        controllers = {number: f"127.0.0.1:{Ports.of(folders[number]).controller}" for number in electable}
        voters = [f"{number}@{at}:{cluster_id()}" for number, at in controllers.items()]
        of_voters, of_others = ("--initial-controllers", ",".join(voters)), ("--no-initial-controllers",)
        same = ("-t", cluster_id())
        self.nodes: dict[int, EmbeddedBroker] = {
            number: EmbeddedBroker(
                folder,
                properties={
                    **_properties(number, nodes, list(controllers.values())),
                    **(_only(number in electable, Ports.of(folder)) if lone_controller else {}),
                    **(properties or {}),
                },
                heap=heap,
                formatting=(*(of_voters if number in electable else of_others), *same),
            )
            for number, folder in folders.items()
        }
        self.brokers = {number: node for number, node in self.nodes.items() if number <= nodes}

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of all brokers, for clients."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values())

    def client_config(self) -> dict[str, str]:
        """Return librdkafka properties to connect."""
        return {"bootstrap.servers": self.bootstrap_servers}

    def start(self) -> EmbeddedCluster:
        """Start every node, and return when all brokers answer."""
        with ThreadPoolExecutor(max_workers=len(self.nodes)) as pool:
            list(pool.map(EmbeddedBroker.launch, self.nodes.values()))
            list(pool.map(EmbeddedBroker.await_ready, self.brokers.values()))
        self.await_healthy()
        return self

    def stop(self) -> None:
        """Kill every node. An orderly stop would need a majority to the end, and the data is no longer needed."""
        for node in self.nodes.values():
            node.kill()

    def start_again(self, number: int) -> None:
        """Start a node that was killed, and return when it listens."""
        node = self.nodes[number]
        node.launch()
        if number in self.brokers:
            node.await_ready()
        else:
            port = node.ports.controller
            wait_until(lambda: is_listening(port), timeout=HEALTHY_SECONDS, what="the controller to listen")

    def await_healthy(self) -> None:
        """Return when the cluster knows every broker, and every partition has all of its replicas in sync.

        :raises TimeoutError: the cluster is not whole in time.
        """
        # Make a new client each time: an old client may go on asking a broker that has been replaced since.
        wait_until(self._is_healthy, timeout=HEALTHY_SECONDS, what=_IN_SYNC, poll_seconds=0.5)

    def restart_each(self) -> None:
        """Restart one broker after the other, as an upgrade does, each when the cluster is whole again."""
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
    """Return the properties that make a broker a member of the cluster."""
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
        # After a broker's death, its partitions have no leader for this long. The default is 9 s.
        "broker.session.timeout.ms": "6000",
    }


def _only(controller: bool, ports: Ports) -> dict[str, str]:
    """Return the properties that make a node only a controller, or only a broker."""
    listener = f"CONTROLLER://127.0.0.1:{ports.controller}" if controller else f"CLIENT://127.0.0.1:{ports.client}"
    return {
        "process.roles": "controller" if controller else "broker",
        "listeners": listener,
        "advertised.listeners": listener,
    }


def brokers_on(directory: Path, count: int) -> EmbeddedBroker | EmbeddedCluster:
    """Return the context manager for so many brokers: one broker without replicas, or a cluster with replicas."""
    return EmbeddedBroker(directory) if count == 1 else EmbeddedCluster(directory, nodes=count)
