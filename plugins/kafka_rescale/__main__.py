"""``python -m kafka_rescale validate|describe|plan|status|verify FILE``."""

from __future__ import annotations

import sys

from kafka_rescale.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
