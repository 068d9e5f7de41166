"""Adds the warm-up gate's jar to a wheel, and to a source distribution; compiles it if `make setup` has not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STAMP = ".built-from"


class GateJarHook(BuildHookInterface):
    """Called by hatchling for every target that it builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the jar to the files of the target.

        :param version: ``editable`` for a checkout that stays where it is: it finds its jar there.
        """
        if version == "editable":
            return
        root = Path(self.root)
        jar = gate_jar(root)
        # The stamp names the source of the jar. By it, a build from the source distribution sees that the jar was
        # made from the source beside it.
        kept = [jar] if self.target_name == "wheel" else [jar, jar.with_name(STAMP)]
        prefix = "kafka_rescale/shipped/" if self.target_name == "wheel" else ""
        for file in kept:
            build_data["force_include"][str(file)] = f"{prefix}{file.relative_to(root)}"


def gate_jar(root: Path) -> Path:
    """Return the jar. Compile it first if there is none, or if it was not made from the present source.

    :param root: the directory from which ``testbed`` is imported.
    :raises SystemExit: the jar can't be compiled. The text says why.
    """
    sys.path.insert(0, str(root))
    try:
        from testbed.jars import BuildError, MissingToolError, ensure_gate_jar

        return ensure_gate_jar()
    except (BuildError, MissingToolError) as error:
        reason = f"The jar of the warm-up gate is missing or outdated, and can't be built. {error}"
        raise SystemExit(reason) from None
    finally:
        sys.path.remove(str(root))
