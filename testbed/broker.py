"""A real Kafka broker (one KRaft node) that lives as long as wanted: for tests, demo and benchmarks."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from testbed.broker_config import (
    Ports,
    cluster_id,
    jvm_options,
    quick_start,
    server_properties,
    to_properties_file,
)
from testbed.broker_security import BrokerSecurity
from testbed.jars import java_command
from testbed.kept_process import KeptProcess
from testbed.processes import end_process, end_with_parent, is_running, kill_process, wait_until

START_TIMEOUT_SECONDS = 90
STOP_TIMEOUT_SECONDS = 60


class BrokerError(RuntimeError):
    """The broker didn't start, or one runs already on the same directory."""


class EmbeddedBroker:
    """One broker on one directory, always on the same port.

    :param directory: data, properties, log (``broker.log``) and pid file; made if missing, kept by ``stop()``
    :param port: port for clients on 127.0.0.1; a free one, remembered in the directory, if omitted
    :param properties: broker properties that replace or complete the defaults
    :param heap: ``-Xmx`` of the JVM
    :param sasl_users: user name to password; if given, clients must use SASL_PLAINTEXT with PLAIN
    :param security: instead, SASL_SSL, client certificates and an authorizer, as told there
    :param detached: the broker outlives this process and this context manager; otherwise it dies with them
    :param options: further options of the JVM
    :param formatting: arguments of ``kafka-storage format`` for a new directory; by default for one node alone
    :param version: of Kafka; by default that of everything else. Others start without an archive of classes
    """

    def __init__(
        self,
        directory: Path | str,
        *,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        heap: str = "1g",
        sasl_users: Mapping[str, str] | None = None,
        security: BrokerSecurity | None = None,
        detached: bool = False,
        options: Sequence[str] = (),
        formatting: Sequence[str] = (),
        version: str | None = None,
    ) -> None:
        self.directory = Path(directory).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.ports = Ports.of(self.directory, port)
        self._kept = KeptProcess(self.directory, "broker", None if detached else end_with_parent)
        self._properties_file = self.directory / "server.properties"
        self._overrides = dict(properties or {})
        self._heap = heap
        self._sasl_users = dict(sasl_users or {})
        self.security = security
        self._detached = detached
        self._options = tuple(options)
        self._formatting = tuple(formatting) or ("--standalone", "-t", cluster_id())
        self._version = version

    @property
    def bootstrap_servers(self) -> str:
        """Address for clients."""
        return f"127.0.0.1:{self.ports.client}"

    @property
    def pid(self) -> int | None:
        """Process id of the running broker, or None; also of one that another process started here."""
        pid = self._kept.recorded_pid
        return pid if pid is not None and is_running(pid, self._marker) else None

    def client_config(self, user: str | None = None) -> dict[str, str]:
        """librdkafka properties to connect as ``user`` (default: the first one)."""
        config = {"bootstrap.servers": self.bootstrap_servers}
        if self.security is not None:
            return config | self.security.login(user or next(iter(self.security.users)))
        if self._sasl_users:
            user = user or next(iter(self._sasl_users))
            config |= {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
            config |= {"sasl.username": user, "sasl.password": self._sasl_users[user]}
        return config

    @property
    def internal_config(self) -> dict[str, str]:
        """librdkafka properties of whoever has started the broker: a super user, where there is security."""
        guarded = bool(self._sasl_users or self.security)
        return {"bootstrap.servers": f"127.0.0.1:{self.ports.internal if guarded else self.ports.client}"}

    def certified_config(self, common_name: str) -> dict[str, str]:
        """librdkafka properties to connect by a certificate; only with ``security``."""
        assert self.security is not None, "a broker without certificates"
        return {
            "bootstrap.servers": f"127.0.0.1:{self.ports.mtls}",
            **self.security.certificate(common_name),
        }

    def start(self) -> EmbeddedBroker:
        """Format the directory if it is new, start the broker, return when it answers a metadata request."""
        self.launch()
        self.await_ready()
        if self.security is not None:
            self.security.create_users(AdminClient(self.internal_config))
        return self

    def launch(self) -> None:
        """Format the directory if it is new, and start the process.

        A broker of a cluster answers only when a majority of its controllers runs: start all of them before any is
        waited for.

        :raises BrokerError: the directory has a broker at work, or can't be formatted.
        """
        if self.pid is not None:
            raise BrokerError(f"broker {self.pid} already runs on {self.directory}: stop it first")
        data = self.directory / "data"
        properties = server_properties(data, self.ports, self._sasl_users, self._overrides, self.security)
        self._properties_file.write_text(to_properties_file(properties))
        if not (data / "meta.properties").exists():
            self._format()
        secured = self.security.jvm_options() if self.security else ()
        options = (*jvm_options(self._heap), *self._quick_start(), *secured, *self._options)
        program = java_command("kafka.Kafka", str(self._properties_file), options=options, version=self._version)
        self._kept.start(program)

    def stop(self) -> None:
        """SIGTERM and wait until the process is gone (SIGKILL as the last resort); nothing if none runs.

        Waiting matters: a second broker on a directory that is still being closed corrupts the metadata log.
        """
        self.thaw()
        if (pid := self.pid) is not None:
            end_process(pid, marker=self._marker, timeout=STOP_TIMEOUT_SECONDS)
        self._kept.forget()

    def kill(self) -> None:
        """SIGKILL, as a crash would do, and wait until the process is gone."""
        if (pid := self.pid) is not None:
            kill_process(pid, marker=self._marker)
        self._kept.forget()

    def freeze(self) -> None:
        """SIGSTOP: the process keeps its connections and answers nothing, as in a long pause of its machine."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT: go on after ``freeze``; nothing happens to a broker that runs, or is down."""
        self._signal(signal.SIGCONT)

    def restart(self) -> EmbeddedBroker:
        """Stop and start on the same directory and port."""
        self.stop()
        return self.start()

    def __enter__(self) -> EmbeddedBroker:
        return self if self.pid is not None and self._detached else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._detached:
            self.stop()

    @property
    def _marker(self) -> str:
        return str(self._properties_file)

    def _signal(self, number: signal.Signals) -> None:
        if (pid := self.pid) is not None:
            os.kill(pid, number)

    def _quick_start(self) -> tuple[str, ...]:
        return () if self._version else quick_start()

    def _format(self) -> None:
        arguments = ("format", *self._formatting, "-c", str(self._properties_file))
        options = ("-XX:TieredStopAtLevel=1", *self._quick_start())
        command = java_command("kafka.tools.StorageTool", *arguments, options=options, version=self._version)
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise BrokerError(f"formatting {self.directory} failed:\n{result.stdout}{result.stderr}")

    def await_ready(self) -> None:
        """Return when the broker answers a metadata request.

        :raises BrokerError: it has ended instead.
        :raises TimeoutError: it does not answer in time.
        """
        quiet = {"log_level": 0, "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 100}
        admin = AdminClient({**self.internal_config, **quiet})

        def answers() -> bool:
            if self._kept.has_ended:
                raise BrokerError(f"the broker ended while starting:\n{self._kept.log_tail(3000)}")
            try:
                return bool(admin.list_topics(timeout=1).brokers)
            except KafkaException:
                return False

        try:
            wait_until(answers, timeout=START_TIMEOUT_SECONDS, what=f"an answer of {self.bootstrap_servers}")
        except (TimeoutError, BrokerError):
            self.kill()
            raise
