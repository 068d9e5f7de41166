"""Start, stop or look at an embedded broker from a shell. The broker outlives the command."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kafka_rescale.core.errors import InvalidInput

from testbed.broker import EmbeddedBroker


def main(arguments: list[str] | None = None) -> int:
    """Start or stop a broker, or print its status. ``status`` exits with 3 if no broker runs."""
    parser = argparse.ArgumentParser(prog="python -m testbed.broker_command", description=__doc__)
    parser.add_argument("command", choices=["start", "stop", "status"])
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--port", type=int, help="port of a new broker; by default a free port, which it keeps")
    parser.add_argument("--heap", default="1g")
    parser.add_argument("--property", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args(arguments)
    properties = dict(text.split("=", 1) for text in options.property)
    try:
        broker = EmbeddedBroker(
            options.directory, port=options.port, properties=properties, heap=options.heap, detached=True
        )
    except InvalidInput as error:
        parser.error(str(error))
    if options.command == "start" and broker.pid is None:
        broker.start()
    elif options.command == "stop":
        broker.stop()
    state = f"runs at {broker.bootstrap_servers}, process {broker.pid}" if broker.pid else "stopped"
    print(f"{broker.directory}: {state}")
    return 3 if options.command == "status" and broker.pid is None else 0


if __name__ == "__main__":
    sys.exit(main())
