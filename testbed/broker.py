"""A real Kafka broker (one KRaft node) that lives as long as it is needed, for tests, demo and benchmarks."""

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
    """The broker didn't start, or a broker runs already on the same directory."""


class EmbeddedBroker:
    """One broker on one directory, always on the same port.

    :param directory: data, properties, log (``broker.log``) and pid file; made if missing, kept by ``stop()``
    :param port: port for clients on 127.0.0.1; if omitted, a free port, which the directory remembers
    :param properties: broker properties that replace or complete the defaults
    :param heap: ``-Xmx`` of the JVM
    :param sasl_users: user name to password; if given, clients must use SASL_PLAINTEXT with PLAIN
    :param security: instead of ``sasl_users``, SASL_SSL, client certificates and an authorizer
    :param detached: whether the broker outlives this process and this context manager; otherwise it dies with them
    :param options: further options of the JVM
    :param formatting: arguments of ``kafka-storage format`` for a new directory; by default for one node alone
    :param version: version of Kafka, by default that of everything else. Other versions start without an archive
        of classes
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
        """Process id of the running broker, even if another process started it here; None if no broker runs."""
        pid = self._kept.recorded_pid
        return pid if pid is not None and is_running(pid, self._marker) else None

    def client_config(self, user: str | None = None) -> dict[str, str]:
        """Return librdkafka properties to connect as ``user``, by default as the first user."""
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
        """librdkafka properties of the process that has started the broker. With security, it is a super user."""
        guarded = bool(self._sasl_users or self.security)
        return {"bootstrap.servers": f"127.0.0.1:{self.ports.internal if guarded else self.ports.client}"}

    def certified_config(self, common_name: str) -> dict[str, str]:
        """Return librdkafka properties to connect by a certificate; only with ``security``."""
        assert self.security is not None, "a broker without certificates"
        return {
            "bootstrap.servers": f"127.0.0.1:{self.ports.mtls}",
            **self.security.certificate(common_name),
        }

    def start(self) -> EmbeddedBroker:
        """Format the directory if it is new, start the broker, and return when it answers a metadata request."""
        self.launch()
        self.await_ready()
        if self.security is not None:
            self.security.create_users(AdminClient(self.internal_config))
        return self

    def launch(self) -> None:
        """Format the directory if it is new, and start the process.

        A broker of a cluster answers only when a majority of its controllers runs. So launch all nodes before you
        wait for any of them.

        :raises BrokerError: a broker runs on the directory, or the directory can't be formatted.
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
        """End the process by SIGTERM, as a last resort by SIGKILL, and wait until it is gone.

        If no process runs, do nothing. Waiting matters, because a second broker on a directory that is still being
        closed corrupts the metadata log.
        """
        self.thaw()
        if (pid := self.pid) is not None:
            end_process(pid, marker=self._marker, timeout=STOP_TIMEOUT_SECONDS)
        self._kept.forget()

    def kill(self) -> None:
        """End the process by SIGKILL, as a crash would, and wait until it is gone."""
        if (pid := self.pid) is not None:
            kill_process(pid, marker=self._marker)
        self._kept.forget()

    def freeze(self) -> None:
        """Stop the process by SIGSTOP: it keeps its connections and answers nothing, as if its machine paused."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the process go on after ``freeze`` (SIGCONT). This does nothing to a broker that runs or is down."""
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

        :raises BrokerError: the broker has ended instead.
        :raises TimeoutError: the broker does not answer in time.
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
