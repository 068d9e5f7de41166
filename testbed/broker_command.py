"""The embedded broker from a shell: one that outlives the command."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kafka_rescale.core.errors import InvalidInput

from testbed.broker import EmbeddedBroker


def main(arguments: list[str] | None = None) -> int:
    """``start``, ``stop`` or ``status`` of a broker that outlives the command; status exits 3 if none."""
    parser = argparse.ArgumentParser(prog="python -m testbed.broker_command", description=__doc__)
    parser.add_argument("command", choices=["start", "stop", "status"])
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--port", type=int, help="of a new one; else a free port, which it keeps")
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
