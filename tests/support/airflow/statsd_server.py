"""A StatsD server as far as a test needs one: a UDP socket that keeps what has arrived."""

from __future__ import annotations

import socket
from threading import Thread
from types import TracebackType


class StatsdServer:
    """Listens on a free port of 127.0.0.1 while it is open.

    :ivar gauges: the newest value of each gauge, by name.
    :ivar tags: the tags of each gauge, if Airflow writes them into the name in InfluxDB's format.
    """

    def __init__(self) -> None:
        self.gauges: dict[str, float] = {}
        self.tags: dict[str, dict[str, str]] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = Thread(target=self._receive, daemon=True)

    @property
    def port(self) -> int:
        """UDP port."""
        return int(self._socket.getsockname()[1])

    def settings(self, prefix: str = "airflow", *, with_tags: bool = False) -> dict[str, str]:
        """Return the environment of an Airflow that reports here.

        :param with_tags: whether names carry tags. Plain StatsD has no tags.
        """
        return {
            "AIRFLOW__METRICS__STATSD_ON": "True",
            "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
            "AIRFLOW__METRICS__STATSD_PORT": str(self.port),
            "AIRFLOW__METRICS__STATSD_PREFIX": prefix,
            "AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED": str(with_tags),
        }

    def __enter__(self) -> StatsdServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", ("127.0.0.1", self.port))
        self._thread.join()
        self._socket.close()

    def _receive(self) -> None:
        while packet := self._socket.recv(65_536):
            for line in packet.decode().splitlines():
                names, _, rest = line.partition(":")
                value, _, kind = rest.partition("|")
                name, *tags = names.split(",")
                if kind == "g":
                    self.gauges[name] = float(value)
                    self.tags[name] = dict(tag.split("=", 1) for tag in tags)
