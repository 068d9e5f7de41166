"""``python -m kafka_rescale validate|acls|describe|plan|status|verify|accept FILE``."""

from __future__ import annotations

import sys

from kafka_rescale.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
