"""The plugins folder: the loader executes every file in it that is not ignored, as a top-level module."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import json, sys
from airflow.plugins_manager import _get_plugins
plugins, errors = _get_plugins()
print(json.dumps({"plugins": [p.name for p in plugins], "errors": errors, "modules": sorted(
    name for name, module in sys.modules.items()
    if "." not in name and str(getattr(module, "__file__", None)).startswith(sys.argv[1]))}))
"""


def loaded() -> dict[str, object]:
    output = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(ROOT / "plugins")],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return json.loads(output.splitlines()[-1])


def test_loading_the_plugins_adds_only_the_plugin_and_its_package() -> None:
    found = loaded()
    assert found["errors"] == {}
    assert "kafka_rescale" in found["plugins"]  # type: ignore[operator]
    assert set(found["modules"]) <= {"kafka_rescale", "kafka_rescale_plugin"}  # type: ignore[call-overload]
