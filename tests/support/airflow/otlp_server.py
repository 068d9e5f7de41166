"""A receiver of OpenTelemetry metrics over HTTP, as far as a test needs one."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

Tags = frozenset[tuple[str, str]]


class OtlpServer:
    """Listens on a free port of 127.0.0.1 while it is open.

    :ivar gauges: the newest value of each gauge, by name and tags.
    """

    def __init__(self) -> None:
        self.gauges: dict[tuple[str, Tags], float] = {}
        gauges = self.gauges

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                gauges.update(_gauges_of(ExportMetricsServiceRequest.FromString(body)))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Write nothing into the test's output."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    def settings(self) -> dict[str, str]:
        """Return the environment of an Airflow that reports here."""
        return {
            "AIRFLOW__METRICS__OTEL_ON": "True",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self._server.server_port}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        }

    def __enter__(self) -> OtlpServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _gauges_of(request: ExportMetricsServiceRequest) -> dict[tuple[str, Tags], float]:
    metrics = [m for r in request.resource_metrics for scope in r.scope_metrics for m in scope.metrics]
    return {
        (metric.name, frozenset((a.key, a.value.string_value) for a in point.attributes)): point.as_double
        or float(point.as_int)
        for metric in metrics
        for point in metric.gauge.data_points
    }
